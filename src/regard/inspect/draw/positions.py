"""Draw position encodings, and how similar positions are."""

import numpy as np
from matplotlib.figure import Figure

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers
from regard.inspect.draw.axes import check_table, paint
from regard.inspect.draw.colors import build_palette

LINES = ("-", "--", "-.", ":")
CURVES = 4


def draw_positions(table: Numbers, title: str = "") -> Figure:
    """Draw a table as a heat map, some of its dimensions as curves, and the cosine of every two positions.

    `table` has a row for each position and a column for each dimension.
    """
    values = check_table(table)
    if len(values) < 2:
        raise wrong("table", f"{len(values)} position", "at least 2", "draw more positions")
    figure = Figure(figsize=(12.0, 3.8), layout="constrained")
    heat, curves, alike = figure.subplots(1, 3)
    largest = float(np.abs(values).max()) or 1.0
    figure.colorbar(paint(heat, values, "difference", largest), ax=heat, label="value")
    heat.set(xlabel="dimension", ylabel="position", title="encoding")
    shades = build_palette("weights")[np.linspace(110, 255, CURVES).astype(int)] / 255
    for dimension, line, color in zip(choose_dimensions(values.shape[1]), LINES, shades, strict=False):
        curves.plot(values[:, dimension], line, color=color, label=f"dimension {dimension}")
    curves.set(xlabel="position", title="some dimensions")
    curves.legend(frameon=False, fontsize="small")
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    unit = np.divide(values, lengths, out=np.zeros_like(values), where=lengths > 0)
    figure.colorbar(paint(alike, unit @ unit.T, "difference"), ax=alike, label="cosine")
    alike.set(xlabel="position", ylabel="position", title="likeness of positions")
    if title:
        figure.suptitle(title, parse_math=False)
    return figure


def choose_dimensions(dimensions: int) -> list[int]:
    """Return a few dimensions, from the fastest to the slowest.

    >>> choose_dimensions(64)
    [0, 21, 42, 63]
    """
    return sorted({round(share * (dimensions - 1)) for share in np.linspace(0, 1, CURVES).tolist()})
