"""Draw weights in a terminal: shaded blocks, with every token beside its row or above its column."""

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.labels import make_visible, shorten_together

SHADES = " ░▒▓█"
BARS = "▁▂▃▄▅▆▇█"
TALLEST = 12  # signs of a column's label
WIDE = 2  # cells of a column: as wide as a Chinese character
LONGEST = 20  # cells of a row's label


def render_heat_map(weights: Numbers, source: Sequence[str], target: Sequence[str], width: int) -> Text:
    """Return the map as text of at most `width` cells a line; columns that do not fit go on below.

    >>> print(render_heat_map([[0.9, 0.1], [0.0, 1.0]], ["ab", "c"], ["x", "yz"], 20))
        a
        b c
      x ██
     yz   ██
    """
    table = to_array("weights", weights, axes=2).tolist()
    target = shorten_together([make_visible(token) for token in target], LONGEST)
    source = shorten_together([make_visible(token) for token in source], TALLEST)
    margin = max(map(cell_len, target), default=0) + 2
    room = max(1, (width - margin) // WIDE)
    blocks = [slice(start, start + room) for start in range(0, len(source), room)]
    lines = [line for block in blocks for line in render_block(table, source, target, block, margin)]
    return Text("\n").join(lines)


def describe_scale(weights: Sequence[Sequence[float]]) -> str:
    """Return what the darkest block means, and the largest weight.

    >>> describe_scale([[0.25, 0.5]])
    '█ is 1, the largest weight is 0.5'
    """
    largest = max((clamp(weight) for row in weights for weight in row), default=0.0)
    return f"█ is 1, the largest weight is {largest:.3g}"


def render_block(
    weights: Sequence[Sequence[float]], source: Sequence[str], target: Sequence[str], block: slice, margin: int
) -> Iterator[Text]:
    """Yield the lines of some columns: their labels from top to bottom, then a line for each row."""
    labels = source[block]
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


def render_curve(values: Sequence[float], width: int) -> str:
    """Return numbers as bars, from the lowest to the highest; the mean of neighbors if there are more than `width`.

    >>> render_curve([0.0, 2.0, 4.0, 7.0, math.nan], 9), render_curve([0.0, 2.0, 4.0, 8.0], 2)
    ('▁▃▅█ ', '▁█')
    """
    count = min(width, len(values))
    parts = [values[place * len(values) // count : (place + 1) * len(values) // count] for place in range(count)]
    means = [sum(part) / len(part) for part in parts]
    finite = [mean for mean in means if math.isfinite(mean)] or [0.0]
    low, step = min(finite), (max(finite) - min(finite)) / (len(BARS) - 1) or 1.0
    return "".join(BARS[round((mean - low) / step)] if math.isfinite(mean) else " " for mean in means)


def choose_shade(weight: float) -> str:
    """Return the block whose darkness is nearest; NaN counts as 0."""
    return SHADES[round(clamp(weight) * (len(SHADES) - 1))]


def choose_color(weight: float) -> str:
    """Return a color from dim to bright blue."""
    amount = clamp(weight)
    return f"rgb({int(70 + 30 * amount)},{int(90 + 90 * amount)},{int(140 + 115 * amount)})"


def clamp(weight: float) -> float:
    """Return a weight within 0 … 1; NaN is 0."""
    return min(1.0, max(0.0, weight)) if math.isfinite(weight) else 0.0
