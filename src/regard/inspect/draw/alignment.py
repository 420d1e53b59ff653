"""Draw attention as a heat map: one row for each query, one column for each key."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers
from regard.inspect.draw.axes import MOST, Axis, add_title, check_table, draw_grid_lines, label, paint
from regard.inspect.draw.colors import Kind
from regard.inspect.draw.fonts import choose_fonts

CELL = 0.27  # inches
LARGEST = 40.0  # inches: a picture of a page of text is still a picture
FORMATS = (".png", ".svg", ".pdf")


def draw_alignment(
    weights: Numbers,
    source: Sequence[str] | None = None,
    target: Sequence[str] | None = None,
    title: str = "",
    *,
    kind: Kind = "weights",
    largest: float = 1.0,
) -> Figure:
    """Draw a heat map with every token beside its row or above its column; white is 0, the darkest is `largest`.

    `weights` has a row for each target and a column for each source. Positions without tokens are numbered. With more
    than a thousand, each cell shows the largest of several weights.
    """
    table = check_table(weights)
    rows = Axis.from_tokens("target", target, table.shape[0])
    columns = Axis.from_tokens("source", source, table.shape[1])
    letters = choose_fonts([*rows.texts, *columns.texts, title])
    width, height = (min(LARGEST, 1.6 + measure_inches(axis)) for axis in (columns, rows))
    figure = Figure(figsize=(width + 0.6, height), layout="constrained")
    axes = figure.subplots()
    picture = paint(axes, table, kind, largest)
    legend = label(axes, rows, columns, letters)
    draw_grid_lines(axes, *table.shape)
    figure.colorbar(picture, ax=axes, shrink=0.8, label="weight" if kind == "weights" else "difference")
    pooled = ["each cell is the largest of several"] if max(table.shape) > MOST else []
    add_title(figure, title, letters, legend, pooled)
    return figure


def measure_inches(axis: Axis) -> float:
    """Return the length of an axis: cells are smaller if there are too many to read all tokens."""
    if axis.has_only_numbers:
        return 7.0
    return axis.size * (CELL if axis.size <= 100 else max(0.01, 20.0 / axis.size))


def save_figure(figure: Figure, path: Path | str) -> None:
    """Write a figure in the format that its name ends in. The text in an SVG stays text."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        fix = f"write {path.with_suffix('.png')}"
        raise wrong("output", path, f"a name that ends in {', '.join(FORMATS)}", fix)
    if not path.parent.is_dir():
        raise wrong("output", path, "a folder that exists", f"make {path.parent} first")
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(path, dpi=150)
