"""Draw position encodings, and how similar positions are."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers
from regard.inspect.draw.axes import Table, check_table, paint
from regard.inspect.draw.color_scale import LINES, ColorScale
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.sheet import Sheet
from regard.inspect.draw.words import Language, localize

CURVES = 4
SIDE = 2.3  # inches of a panel
LIVELY = 0.5  # of the largest spread: a dimension that varies less looks flat


def draw_positions(table: Numbers, title: str = "", *, language: Language = "en") -> Figure:
    """Draw a table as a heat map, some of its dimensions as curves, and the cosine of every two positions.

    `table` has a row for each position and a column for each dimension.
    """
    values = check_table(table)
    if len(values) < 2:
        raise wrong("table", f"{len(values)} position", "at least 2", "draw more positions")
    sheet = Sheet(choose_fonts([title], language))
    position, dimension = localize("position", language), localize("dimension", language)
    heat = sheet.add_panel(0.0, 0.0, SIDE, SIDE)
    sheet.name_axes(heat, dimension, position, localize("encoding", language))
    draw_map(sheet, heat, values, localize("value", language))
    curves = sheet.add_panel(0.0, 0.0, SIDE, SIDE)
    draw_dimensions(curves, values)
    sheet.name_axes(curves, position, dimension, localize("some dimensions", language))
    sheet.move_right(curves)
    alike = sheet.add_panel(0.0, 0.0, SIDE, SIDE)
    sheet.name_axes(alike, position, position, localize("similarity of positions", language))
    sheet.move_right(alike)
    draw_map(sheet, alike, compute_cosines(values), localize("cosine", language))
    return sheet.finish(title)


def draw_map(sheet: Sheet, panel: Axes, table: Table, name: str) -> None:
    """Draw a table and its scale, on which zero is in the middle."""
    scale = ColorScale("difference").fit(table)
    sheet.add_color_scale(paint(panel, table, scale), scale, name, panel)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def draw_dimensions(axes: Axes, values: Table) -> None:
    """Draw some dimensions as curves above each other, each beside its number."""
    dimensions = choose_dimensions(values)
    height = float(np.ptp(values)) or 1.0
    for row, (dimension, color) in enumerate(zip(dimensions, LINES, strict=False)):
        axes.axhline(-row, color="#dddddd", linewidth=0.8)
        column = values[:, dimension]
        axes.plot(0.9 * (column - values.min()) / height - 0.45 - row, color=color, linewidth=1.2)
    axes.set_yticks([-row for row in range(len(dimensions))], list(map(str, dimensions)))
    axes.set(ylim=(0.5 - len(dimensions), 0.5), xlim=(0, max(1, len(values) - 1)))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def compute_cosines(values: Table) -> Float[np.ndarray, "row row"]:
    """Return the cosine of every two rows; 0 for a row of zeros."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    unit = np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
    cosines: Float[np.ndarray, "row row"] = unit @ unit.T
    return cosines


def choose_dimensions(values: Table) -> list[int]:
    """Return a few dimensions that vary, from the fastest to the slowest, each at a speed of its own.

    The speed of a dimension is how far it moves in all. Of those whose spread is large enough to see, the ones are
    chosen whose speeds are nearest to a geometric series. For sinusoids these have different frequencies.

    >>> angles = np.outer(np.arange(60), [1.0, 0.3, 0.1, 1e-4])
    >>> choose_dimensions(np.concatenate([np.sin(angles), np.cos(angles)], 1))
    [4, 5, 2]
    """
    spread, speed = np.ptp(values, axis=0), np.abs(np.diff(values, axis=0)).sum(0)
    lively = [place for place in range(values.shape[1]) if spread[place] >= LIVELY * spread.max() and speed[place] > 0]
    if not lively:
        return list(range(min(CURVES, values.shape[1])))
    pace = np.log(speed[lively])
    chosen: dict[int, float] = {}
    for wanted in np.linspace(pace.max(), pace.min(), CURVES).tolist():
        nearest = int(np.abs(pace - wanted).argmin())
        if all(abs(pace[nearest] - other) > 0.2 for other in chosen.values()):
            chosen[lively[nearest]] = float(pace[nearest])
    return list(chosen)
