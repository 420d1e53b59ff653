"""Draw a curve that attention fits, and the weights behind it."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.axes import check_table, paint
from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.sheet import GAP, Sheet
from regard.inspect.draw.words import Language, localize

COLORS = ("#888888", "#0072b2", "#d55e00")  # they differ in grey and for the color-blind too (Okabe & Ito)
STYLES: Sequence[Literal[":", "--", "-"]] = (":", "--", "-")
WIDE, NARROW, HIGH = 3.2, 1.5, 2.3  # inches of the curve, of a map, and of both
Fits = Mapping[str, tuple[Numbers, Numbers]]


def draw_regression(
    points: tuple[Numbers, Numbers],
    grid: Numbers,
    truth: Numbers,
    fits: Fits,
    across: str = "x",
    title: str = "",
    *,
    language: Language = "en",
) -> Figure:
    """Draw truth, points and every fit on the left; then the weights of each fit, new points down, known points across.

    `across` names the horizontal axis. The maps share one color scale, so that their weights can be compared.
    """
    known = to_array("points", points[0]), to_array("points", points[1])
    tables = {name: check_table(weights)[:, np.argsort(known[0])] for name, (_, weights) in fits.items()}
    scale = ColorScale().fit(*tables.values())
    sheet = Sheet(choose_fonts([title, across, *fits], language))
    curve = sheet.add_panel(0.0, 0.0, WIDE, HIGH)
    sheet.name_axes(curve, localize(across, language), "y")
    marks = [
        Line2D(to_array("grid", grid), to_array("truth", truth), color="black", linewidth=1),
        Line2D(*known, color="black", alpha=0.35, marker="o", markersize=4, linestyle="", markeredgewidth=0),
        *(
            Line2D(to_array("grid", grid), to_array("fits", values), color=color, linestyle=line, linewidth=2)
            for (values, _), color, line in zip(fits.values(), COLORS, STYLES, strict=False)
        ),
    ]
    for mark, name in zip(marks, ("truth", "training points", *fits), strict=False):
        mark.set_label(localize(name, language))
        curve.add_line(mark)
    curve.autoscale_view()
    sheet.add_key(marks, 0.0, sheet.measure(curve).y0 - GAP, columns=3)
    panels = draw_maps(sheet, tables, scale, language)
    if panels:
        sheet.add_color_scale(panels[0].images[0], scale, localize("weight", language), *panels)
    return sheet.finish(title)


def draw_maps(sheet: Sheet, tables: Mapping[str, np.ndarray], scale: ColorScale, language: Language) -> list[Axes]:
    """Draw the weights of each fit; only the first map names the rows, which all of them share."""
    panels: list[Axes] = []
    for name, table in tables.items():
        panel = sheet.add_panel(0.0, 0.0, NARROW, HIGH)
        rows = "" if panels else localize("new points", language)
        paint(panel, table, scale)
        sheet.name_axes(panel, localize("training points, sorted", language), rows, localize(name, language))
        panel.set_xticks(choose_ends(table.shape[1]))
        panel.set_yticks([] if panels else choose_ends(len(table)))
        sheet.move_right(panel)
        panels.append(panel)
    return panels


def choose_ends(size: int) -> list[int]:
    """Return the first and the last position.

    >>> choose_ends(5), choose_ends(1)
    ([0, 4], [0])
    """
    return sorted({0, size - 1})
