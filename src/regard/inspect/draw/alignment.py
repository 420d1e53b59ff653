"""Draw attention as a heat map: one row for each query, one column for each key."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from regard.inspect.draw.arrays import Numbers
from regard.inspect.draw.axes import MOST, Axis, check_table, draw_grid_lines, label, paint
from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.output import save_figure
from regard.inspect.draw.sheet import TEXT, Sheet
from regard.inspect.draw.words import Language, localize

__all__ = ["draw_alignment", "save_figure"]

CELL, SMALLEST = (0.15, 0.27), 0.1  # inches
NUMBERED = 7.0  # inches of an axis that has only numbers
LARGEST = 40.0  # inches: a picture of a page of text is still a picture


def draw_alignment(
    weights: Numbers,
    source: Sequence[str] | None = None,
    target: Sequence[str] | None = None,
    title: str = "",
    *,
    names: tuple[str, str] = ("query", "key"),
    scale: ColorScale | None = None,
    language: Language = "en",
) -> Figure:
    """Draw a heat map with every token of `target` beside its row, and of `source` above its column.

    Positions without tokens are numbered. `names` are those of the rows and of the columns. White is 0; `scale` says
    what the darkest is, by default what the weights need. With more than a thousand positions, each cell shows the
    largest of several weights.
    """
    table = check_table(weights)
    scale = (scale or ColorScale()).fit(table)
    down, across = (localize(name, language) for name in names)
    rows = Axis.from_tokens("target", target, table.shape[0], down)
    columns = Axis.from_tokens("source", source, table.shape[1], across)
    bar = localize("weight" if scale.kind == "weights" else "difference", language)
    letters = choose_fonts([*rows.texts, *columns.texts, title, down, across, bar], language)
    sheet = Sheet(letters)
    cell = choose_cell(max((axis.size for axis in (rows, columns) if not axis.has_only_numbers), default=1))
    panel = sheet.add_panel(0.0, 0.0, measure_inches(columns, cell), measure_inches(rows, cell))
    picture = paint(panel, table, scale)
    legend = label(panel, rows, columns, letters, min(TEXT, 60 * cell))
    draw_grid_lines(panel, *table.shape)
    sheet.add_color_scale(picture, scale, bar, panel)
    pooled = [localize("each cell is the largest of several", language)] if max(table.shape) > MOST else []
    return sheet.finish(title, [*letters.explain(legend, language), *pooled])


def choose_cell(size: int) -> float:
    """Return the side of a cell in inches: smaller if there are many, but with room for a readable label.

    >>> [choose_cell(size) for size in (1, 30, 60, 200)]
    [0.27, 0.2, 0.15, 0.1]
    """
    low, high = CELL
    return min(high, max(low, 6.0 / size)) if size <= 100 else max(SMALLEST, 15.0 / size)


def measure_inches(axis: Axis, cell: float) -> float:
    """Return the length of an axis."""
    return NUMBERED if axis.has_only_numbers else min(LARGEST - 2, axis.size * cell)
