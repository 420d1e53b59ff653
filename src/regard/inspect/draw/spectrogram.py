"""Draw attention over the time of a sound."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.axes import LONGEST_ROW, check_table, paint
from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.sheet import GAP, TEXT, Sheet
from regard.inspect.draw.words import Language, localize

WIDE, SOUND, ROW = 5.6, 1.1, 0.17  # inches of the time, of the sound, and of each query
TALLEST = 38.0  # inches


def draw_spectrogram(
    values: Numbers,
    weights: Numbers,
    queries: Sequence[str],
    seconds: float | None = None,
    title: str = "",
    *,
    scale: ColorScale | None = None,
    language: Language = "en",
) -> Figure:
    """Draw the spectrogram, low frequencies at the bottom, and under it the weights of each query over time.

    `values` has a row for each band and a column for each frame.
    """
    values, table = to_array("values", values, axes=2), check_table(weights)
    if len(queries) != table.shape[0]:
        raise wrong("queries", f"{len(queries)} labels", str(table.shape[0]), "give one for each query")
    scale = (scale or ColorScale()).fit(table)
    end = float(values.shape[1]) if seconds is None else seconds
    letters = choose_fonts([*queries, title], language)
    sheet = Sheet(letters)
    above = sheet.add_panel(0.0, 0.0, WIDE, SOUND)
    above.imshow(values, origin="lower", aspect="auto", cmap="gray_r", extent=(0, end, 0, values.shape[0]))
    above.set(xticks=[], yticks=[0, values.shape[0]])
    sheet.name_axes(above, "", localize("band", language))
    below = sheet.add_panel(0.0, -SOUND - GAP, WIDE, min(TALLEST, ROW * len(queries)))
    picture = paint(below, table, scale, (0.0, end, len(queries) - 0.5, -0.5))
    ticks = letters.make_ticks(queries, longest=LONGEST_ROW)
    below.set_yticks(range(len(queries)), ticks.ticks, fontsize=TEXT, **letters.style)
    below.tick_params(axis="y", length=0)
    sheet.name_axes(below, localize("frame" if seconds is None else "time (s)", language))
    sheet.add_color_scale(picture, scale, localize("weight", language), above, below)
    return sheet.finish(title, letters.explain(ticks.legend, language))
