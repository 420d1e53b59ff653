"""Draw the values of several rows from several seeds: a dot for each seed, a bar at the median."""

from collections.abc import Mapping, Sequence
from statistics import median

from matplotlib.figure import Figure

from regard.inspect.draw.color_scale import LINES
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.sheet import INK, SMALL, Sheet, format_number
from regard.inspect.draw.words import Language, localize

WIDE, HIGH = 3.0, 0.19  # inches of the panel, and of a row


def draw_ranges(
    rows: Mapping[str, Sequence[float]], quantity: str, title: str = "", *, language: Language = "en"
) -> Figure:
    """Draw a line for each row; rows of one variant (all before a semicolon) have one color."""
    sheet = Sheet(choose_fonts([title, quantity, *rows], language))
    panel = sheet.add_panel(0.0, 0.0, WIDE, HIGH * len(rows) + 0.1)
    variants = list(dict.fromkeys(name.partition(";")[0] for name in rows))
    for place, (name, values) in enumerate(rows.items()):
        color = LINES[variants.index(name.partition(";")[0]) % len(LINES)]
        panel.hlines(place, min(values), max(values), color=color, linewidth=0.8)
        panel.plot(values, [place] * len(values), "o", color=color, markersize=3.5, alpha=0.7, clip_on=False)
        panel.plot(median(values), place, "|", color=INK, markersize=9, clip_on=False)
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_yticks(range(len(rows)), [sheet.letters.spell_missing(name) for name in rows], fontsize=SMALL)
    panel.xaxis.set_major_formatter(format_number)
    panel.tick_params(axis="x", labelsize=SMALL)
    panel.grid(axis="x", color="#eeeeee", linewidth=0.6)
    panel.set_axisbelow(True)
    sheet.name_axes(panel, localize(quantity, language))
    return sheet.finish(title)
