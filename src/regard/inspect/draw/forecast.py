"""Draw a series and its forecast, a panel for each of its columns."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.sheet import GAP, SMALL, Sheet
from regard.inspect.draw.words import Language, localize

KNOWN, FORECAST = "#444444", "#d55e00"
MOST = 8  # panels
LONGEST = 16  # cells of a name beside its panel
WIDE, HIGH = 5.4, 1.1  # inches of a panel


def draw_forecast(
    known: Numbers, forecast: Numbers, names: Sequence[str], title: str = "", *, language: Language = "en"
) -> Figure:
    """Draw the last rows of a series `(moments, columns)`, and its forecast behind them."""
    before, after = to_array("known", known, axes=2), to_array("forecast", forecast, axes=2)
    letters = choose_fonts([*names, title], language)
    sheet = Sheet(letters)
    moments, count = np.arange(-len(before) + 1, 1), min(MOST, before.shape[1])
    labels = letters.make_ticks(names[:count], longest=LONGEST)
    for place, (name, old, new) in enumerate(zip(labels.ticks, before.T, after.T, strict=False)):
        panel = sheet.add_panel(0.0, -place * (HIGH + GAP), WIDE, HIGH)
        panel.plot(moments, old, color=KNOWN)
        panel.plot(range(len(new) + 1), [old[-1], *new], "o-", color=FORECAST, markersize=3)
        panel.locator_params(axis="y", nbins=4)
        panel.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
        panel.tick_params(labelsize=SMALL, labelbottom=place == count - 1)
        across = localize("steps from the last known row", language) if place == count - 1 else ""
        sheet.name_axes(panel, across, name)
    key = [
        Line2D([], [], color=KNOWN, label=localize("known", language)),
        Line2D([], [], color=FORECAST, marker="o", markersize=3, label=localize("forecast", language)),
    ]
    sheet.add_key(key, 0.0, sheet.measure().y0 - GAP, columns=2)
    return sheet.finish(title, letters.explain(labels.legend, language))
