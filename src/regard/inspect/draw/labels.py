"""Tokens as labels: control characters made visible, long ones shortened."""

from unicodedata import category, combining, east_asian_width

BLANKS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}
LONGEST = 20  # signs of a label


def make_visible(token: str) -> str:
    """Return a token with blanks shown that could not be seen, and control characters spelled by their numbers.

    A blank between two words can be seen; one at the edge of a token, or beside another, is written as a sign. A token
    then stays on its line, and no control character reaches a terminal. Characters of private use stay: a font may
    have them.

    >>> make_visible("two words"), make_visible(" a  b"), make_visible("")
    ('two words', '␣a␣␣b', '∅')
    >>> make_visible("\\u202ea"), make_visible("\\x1b[31m")
    ('U+202Ea', 'U+001B[31m')
    """
    shown = "".join(sign if _is_seen(token, place) else _spell(sign) for place, sign in enumerate(token))
    return shown or "∅"


def _is_seen(token: str, place: int) -> bool:
    around = token[max(0, place - 1) : place + 2]
    if token[place] == " ":
        return len(around) == 3 and not any(map(str.isspace, (around[0], around[2])))
    return _is_printable(token[place])


def _spell(sign: str) -> str:
    return BLANKS.get(sign) or f"U+{ord(sign):04X}"


def _is_printable(sign: str) -> bool:
    return sign.isprintable() or category(sign) == "Co"


def shorten(text: str, most: int = LONGEST) -> str:
    """Return at most `most` signs, the last of them an ellipsis if the text is longer; accents stay with their letter.

    >>> shorten("abcdef", 4), shorten("abc", 4)
    ('abc…', 'abc')
    """
    if len(text) <= most:
        return text
    end = most - 1
    while end > 1 and combining(text[end]):
        end -= 1
    return text[:end] + "…"


def measure_cells(text: str) -> int:
    """Return the width of a text in cells: Chinese, Japanese and Korean characters are as wide as two letters.

    >>> measure_cells("ab"), measure_cells("注意")
    (2, 4)
    """
    return sum(2 if is_wide(sign) else 0 if combining(sign) else 1 for sign in text)


def is_wide(sign: str) -> bool:
    """Return whether a character is as wide as it is high."""
    return east_asian_width(sign) in "WF"
