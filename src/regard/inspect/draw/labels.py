"""Tokens as labels: control characters made visible, long ones shortened."""

from unicodedata import combining

BLANKS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}
LONGEST = 20  # signs of a label


def make_visible(token: str) -> str:
    """Return a token with its blanks shown and characters that cannot be printed spelled by their numbers.

    A token then stays on its line, and no control character reaches a terminal.

    >>> make_visible("a b"), make_visible(""), make_visible("\\u202ea"), make_visible("\\x1b[31m")
    ('a␣b', '∅', 'U+202Ea', 'U+001B[31m')
    """
    return "".join(BLANKS.get(sign) or (sign if sign.isprintable() else f"U+{ord(sign):04X}") for sign in token) or "∅"


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
