"""Weights in a terminal: shades of blocks, with every token beside its row or above its column."""

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

SHADES = " ░▒▓█"
TALLEST = 12  # signs of a column's label
WIDE = 2  # cells of a column: as wide as a Chinese character
LONGEST = 20  # cells of a row's label
BLANKS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}


def render_heat_map(
    weights: Sequence[Sequence[float]], source: Sequence[str], target: Sequence[str], width: int
) -> Text:
    """The map as text of at most `width` cells a line; where the columns do not fit, they go on below.

    >>> print(render_heat_map([[0.9, 0.1], [0.0, 1.0]], ["ab", "c"], ["x", "yz"], 20))
        a
        b c
      x ██
     yz   ██
    """
    target = [shorten_row_label(make_visible(token)) for token in target]
    margin = max(map(cell_len, target), default=0) + 2
    room = max(1, (width - margin) // WIDE)
    blocks = [slice(start, start + room) for start in range(0, len(source), room)]
    lines = [line for block in blocks for line in render_block(weights, source, target, block, margin)]
    return Text("\n").join(lines)


def render_block(
    weights: Sequence[Sequence[float]], source: Sequence[str], target: Sequence[str], block: slice, margin: int
) -> Iterator[Text]:
    """Some columns: their labels from top to bottom, then a line for each row."""
    labels = [shorten_column_label(make_visible(token)) for token in source[block]]
    height = max(map(len, labels), default=0)
    for level in range(height):
        signs = [label.rjust(height)[level] for label in labels]
        yield Text((" " * margin + "".join(set_cell_size(sign, WIDE) for sign in signs)).rstrip())
    for token, row in zip(target, weights, strict=True):
        line = Text(" " * (margin - 1 - cell_len(token)) + token + " ")
        for weight in row[block]:
            line.append(choose_shade(weight) * WIDE, style=choose_color(weight))
        line.rstrip()
        yield line


def make_visible(token: str) -> str:
    """A token that keeps to its line: blanks are shown, and no control character reaches the terminal.

    >>> make_visible("a\\x1b[31m b")
    'aU+001B[31m␣b'
    """
    return "".join(BLANKS.get(sign) or (sign if sign.isprintable() else f"U+{ord(sign):04X}") for sign in token) or "∅"


def shorten_row_label(label: str) -> str:
    """A label from left to right, not too wide."""
    return label if cell_len(label) <= LONGEST else set_cell_size(label, LONGEST - 1).rstrip() + "…"


def shorten_column_label(label: str) -> str:
    """A label from top to bottom, not too tall."""
    return label if len(label) <= TALLEST else label[: TALLEST - 1] + "…"


def choose_shade(weight: float) -> str:
    """The block whose darkness is nearest; what is no number was never looked at."""
    return SHADES[round(clamp(weight) * (len(SHADES) - 1))]


def choose_color(weight: float) -> str:
    """From dim to bright blue."""
    amount = clamp(weight)
    return f"rgb({int(70 + 30 * amount)},{int(90 + 90 * amount)},{int(140 + 115 * amount)})"


def clamp(weight: float) -> float:
    """Within 0 … 1."""
    return min(1.0, max(0.0, weight)) if math.isfinite(weight) else 0.0
