"""Draw lines from each query to its keys, as thick as the weight."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.path import Path

from regard.inspect.draw.arrays import Numbers
from regard.inspect.draw.axes import Axis, Table, add_title, check_table
from regard.inspect.draw.colors import make_color_map
from regard.inspect.draw.fonts import FontSet, choose_fonts

FAINTEST = 0.02  # thinner lines cannot be seen
MOST = 3000  # lines; the thinnest are left out


def draw_arcs(
    weights: Numbers,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    title: str = "",
    *,
    threshold: float = FAINTEST,
) -> Figure:
    """Draw queries on the left and keys on the right; weights below the threshold have no line."""
    table = check_table(weights)
    left, right = Axis.from_tokens("queries", queries, table.shape[0]), Axis.from_tokens("keys", keys, table.shape[1])
    letters = choose_fonts([*left.texts, *right.texts, title])
    figure = Figure(figsize=(6.0, min(40.0, 0.8 + 0.24 * max(table.shape))), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(-0.6, 1.6), ylim=(max(table.shape) - 0.5, -0.5))
    axes.set_axis_off()
    draw_lines(axes, table, threshold)
    legend = write_tokens(axes, left, right, letters)
    add_title(figure, title, letters, legend)
    return figure


def draw_lines(axes: Axes, table: Table, threshold: float) -> None:
    """Draw the lines, the thickest last so that they lie on top."""
    pairs = np.argwhere(np.abs(table) >= max(threshold, np.finfo(float).tiny))
    amounts = np.abs(table[tuple(pairs.T)])
    order = np.argsort(amounts)[-MOST:]
    curve = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    paths = [Path([(0, row), (0.5, row), (0.5, column), (1, column)], curve) for row, column in pairs[order].tolist()]
    strengths = amounts[order].clip(0, 1)
    lines = PathCollection(
        paths,
        facecolors="none",
        edgecolors=make_color_map()(0.35 + 0.65 * strengths),
        linewidths=(4 * strengths).clip(0.4).tolist(),
    )
    axes.add_collection(lines, autolim=False)


def write_tokens(axes: Axes, left: Axis, right: Axis, letters: FontSet) -> list[str]:
    """Write the tokens on both sides; return the legend of those that had to be numbered."""
    down = letters.make_ticks(left.texts)
    across = letters.make_ticks(right.texts, 1 + len(down.legend))
    for x, side, ticks in ((-0.03, "right", down.ticks), (1.03, "left", across.ticks)):
        for row, tick in enumerate(ticks):
            axes.text(x, row, tick, ha=side, va="center", **letters.style)
    return down.legend + across.legend
