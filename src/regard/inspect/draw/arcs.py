"""Draw lines from each query to its keys, as thick as the weight."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path

from regard.inspect.draw.arrays import Numbers
from regard.inspect.draw.axes import LONGEST_ROW, Axis, Table, check_table
from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.fonts import FontSet, choose_fonts
from regard.inspect.draw.sheet import GAP, GRAY, TEXT, Sheet, format_number
from regard.inspect.draw.words import Language, localize

FAINTEST = 0.02  # of the largest: thinner lines cannot be seen
MOST = 3000  # lines; the thinnest are left out
WIDE, LINE = 2.4, 0.17  # inches between queries and keys, and from one token to the next
THICKEST, THINNEST = 4.0, 0.4  # points
LONGEST = 40.0  # inches


def draw_arcs(
    weights: Numbers,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    title: str = "",
    *,
    threshold: float | None = None,
    scale: ColorScale | None = None,
    language: Language = "en",
) -> Figure:
    """Draw queries on the left and keys on the right; weights below the threshold have no line.

    The thickest line is the largest number of `scale`, by default what the weights need, and the threshold a fiftieth
    of it.
    """
    table = check_table(weights)
    scale = (scale or ColorScale()).fit(table)
    names = [localize(name, language) for name in ("query", "key", "weight")]
    left = Axis.from_tokens("queries", queries, table.shape[0], names[0])
    right = Axis.from_tokens("keys", keys, table.shape[1], names[1])
    letters = choose_fonts([*left.texts, *right.texts, title, *names], language)
    sheet = Sheet(letters)
    panel = sheet.add_panel(0.0, 0.0, WIDE, min(LONGEST, LINE * max(table.shape)))
    panel.set(xlim=(0, 1), ylim=(max(table.shape) - 0.5, -0.5))
    panel.set_axis_off()
    draw_lines(panel, table, scale, scale.bounds[1] * FAINTEST if threshold is None else threshold)
    legend = write_tokens(panel, left, right, letters)
    box = sheet.measure(panel)
    sheet.add_key(make_key(scale, names[2]), 0.0, box.y0 - GAP, columns=3)
    return sheet.finish(title, letters.explain(legend, language))


def draw_lines(axes: Axes, table: Table, scale: ColorScale, threshold: float) -> None:
    """Draw the lines, the thickest last so that they lie on top."""
    pairs = np.argwhere(np.abs(table) >= max(threshold, np.finfo(float).tiny))
    amounts = np.abs(table[tuple(pairs.T)])
    order = np.argsort(amounts)[-MOST:]
    curve = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    paths = [Path([(0, row), (0.5, row), (0.5, column), (1, column)], curve) for row, column in pairs[order].tolist()]
    strengths = (amounts[order] / scale.bounds[1]).clip(0, 1)
    lines = PathCollection(
        paths, facecolors="none", edgecolors=choose_color(strengths), linewidths=choose_width(strengths).tolist()
    )
    lines.set_clip_on(False)
    axes.add_collection(lines, autolim=False)


def choose_color(strengths: np.ndarray) -> np.ndarray:
    """Return the colors of lines whose weights are these shares of the largest."""
    return np.asarray(ColorScale().color_map(0.2 + 0.8 * strengths))


def choose_width(strengths: np.ndarray) -> np.ndarray:
    """Return the widths of lines in points."""
    return (THICKEST * strengths).clip(THINNEST)


def make_key(scale: ColorScale, name: str) -> list[Line2D]:
    """Return three lines that say which weight is how thick."""
    shares = np.array([0.2, 0.5, 1.0])
    colors, widths = choose_color(shares), choose_width(shares)
    texts = [format_number(share * scale.bounds[1]) for share in shares.tolist()]
    texts[0] = f"{name} {texts[0]}"
    return [
        Line2D([], [], color=color, linewidth=width, label=text)
        for color, width, text in zip(colors, widths, texts, strict=True)
    ]


def write_tokens(axes: Axes, left: Axis, right: Axis, letters: FontSet) -> list[str]:
    """Write the tokens on both sides, and what they are; return the legend of those that had to be numbered."""
    numbers: dict[str, int] = {}
    down = letters.make_ticks(left.texts, LONGEST_ROW, numbers)
    across = letters.make_ticks(right.texts, LONGEST_ROW, numbers)
    for x, side, ticks, name in ((-0.03, "right", down.ticks, left.name), (1.03, "left", across.ticks, right.name)):
        for row, tick in enumerate(ticks):
            axes.text(x, row, tick, ha=side, va="center", fontsize=TEXT, **letters.style)
        axes.text(x, -1.2, name, ha=side, va="center", fontsize=TEXT, color=GRAY, **letters.style)
    return down.legend + across.legend
