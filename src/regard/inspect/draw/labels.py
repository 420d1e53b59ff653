"""Tokens as labels: control characters made visible, long ones cut."""

from collections.abc import Sequence
from unicodedata import category, combining, east_asian_width

BLANKS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}
LONGEST = 20  # cells of a label: Chinese characters take two


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


def shorten_together(labels: Sequence[str], most: int) -> list[str]:
    """Return labels of at most `most` cells, cut in the middle, or wherever they then differ most from each other.

    >>> shorten_together(["encoder.layer.1", "encoder.layer.2"], 8)
    ['enco…r.1', 'enco…r.2']
    >>> shorten_together(["1st of a long row", "2nd of a long row"], 8)
    ['1st …row', '2nd …row']
    """
    if all(measure_cells(label) <= most for label in labels):
        return list(labels)
    heads = sorted(range(most), key=lambda head: abs(head - most // 2))
    return max(([cut_middle(label, most, head) for label in labels] for head in heads), key=lambda cut: len(set(cut)))


def cut_middle(label: str, most: int, head: int | None = None) -> str:
    """Return a label of at most `most` cells, `head` of them (half, by default) before the ellipsis.

    Accents stay with their letters.

    >>> cut_middle("abcdef", 4), cut_middle("abc", 4)
    ('ab…f', 'abc')
    """
    head = most // 2 if head is None else head
    if measure_cells(label) <= most:
        return label
    begin, end = "", ""
    for sign in label:
        if measure_cells(begin + sign) > head:
            break
        begin += sign
    for sign in reversed(label):
        if measure_cells(sign + end) > most - 1 - measure_cells(begin):
            break
        end = sign + end
    while end and combining(end[0]):
        end = end[1:]
    return f"{begin}…{end}"


def measure_cells(text: str) -> int:
    """Return the width of a text in cells: Chinese, Japanese and Korean characters are as wide as two letters.

    >>> measure_cells("ab"), measure_cells("注意")
    (2, 4)
    """
    return sum(2 if is_wide(sign) else 0 if combining(sign) else 1 for sign in text)


def is_wide(sign: str) -> bool:
    """Return whether a character is as wide as it is high."""
    return east_asian_width(sign) in "WF"
