"""Draw what several seeds measured against a number: a line at the median, a band over all seeds."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from regard.inspect.draw.color_scale import LINES
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.sheet import GAP, SMALL, Sheet
from regard.inspect.draw.words import Language, localize

WIDE, HIGH = 2.1, 1.7  # inches of a plot
STYLES: tuple[Literal["-", "--", ":"], ...] = ("-", "--", ":")  # of variants whose names begin alike


def draw_seed_curves(
    rows: Mapping[str, Sequence[float]],
    curves: Mapping[str, Sequence[int]],
    axis: str,
    title: str = "",
    *,
    language: Language = "en",
) -> Figure:
    """Draw a plot for each quantity of `curves`, against the numbers that it gives; rows are in that order.

    The name of a row is that of its variant, a semicolon, and what was measured.
    """
    names = list(dict.fromkeys(name.partition(";")[0] for name in rows))
    sheet = Sheet(choose_fonts([title, axis, *curves, *names], language))
    values, colors = list(rows.values()), list(dict.fromkeys(name.partition(",")[0] for name in names))
    each, start = len(rows) // len(names), 0
    lines = [choose_line(name, names, colors, localize_parts(name, language)) for name in names]
    for place, (quantity, numbers) in enumerate(curves.items()):
        panel = sheet.add_panel(place * (WIDE + 0.6), 0.0, WIDE, HIGH)
        for number, line in enumerate(lines):
            own = values[number * each + start : number * each + start + len(numbers)]
            draw_seeds(panel, numbers, own, line)
        panel.set_xscale("log", base=2)
        panel.minorticks_off()
        panel.set_xticks(numbers, [f"{number}" for number in numbers], fontsize=SMALL)
        sheet.name_axes(panel, localize(axis, language), "", localize_parts(quantity, language))
        start += len(numbers)
    sheet.add_key(lines, 0.0, sheet.measure().y0 - GAP, columns=3)
    return sheet.finish(title)


def localize_parts(text: str, language: Language) -> str:
    """Return the words between commas in a language.

    >>> localize_parts("softmax, learned scores", "zh"), localize_parts("right, %", "en")
    ('softmax，学得的评分', 'right, %')
    """
    return ("，" if language == "zh" else ", ").join(localize(part, language) for part in text.split(", "))


def choose_line(name: str, names: Sequence[str], colors: Sequence[str], label: str) -> Line2D:
    """Return a line with the color of all names that begin alike (before a comma), and dashes of its own among them."""
    first = name.partition(",")[0]
    alike = [other for other in names if other.partition(",")[0] == first]
    dashes = STYLES[alike.index(name) % len(STYLES)]
    return Line2D([], [], label=label, color=LINES[colors.index(first) % len(LINES)], linestyle=dashes)


def draw_seeds(panel: Axes, numbers: Sequence[int], values: Sequence[Sequence[float]], style: Line2D) -> None:
    """Draw the median of all seeds at each number, and the band between the smallest and the largest."""
    color, dashes = style.get_color(), style.get_linestyle()
    panel.fill_between(numbers, [min(own) for own in values], [max(own) for own in values], color=color, alpha=0.15)
    panel.plot(numbers, [median(own) for own in values], color=color, linestyle=dashes, linewidth=1.2)
