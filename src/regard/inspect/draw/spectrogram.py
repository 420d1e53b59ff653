"""Draw attention over the time of a sound."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.axes import add_title, check_table
from regard.inspect.draw.colors import make_color_map
from regard.inspect.draw.fonts import choose_fonts


def draw_spectrogram(
    values: Numbers,
    weights: Numbers,
    queries: Sequence[str],
    seconds: float | None = None,
    title: str = "",
) -> Figure:
    """Draw the spectrogram, low frequencies at the bottom, and under it the weights of each query over time.

    `values` has a row for each band and a column for each frame.
    """
    values = to_array("values", values, axes=2)
    table = check_table(weights)
    if len(queries) != table.shape[0]:
        raise wrong("queries", f"{len(queries)} labels", str(table.shape[0]), "give one for each query")
    end = float(values.shape[1]) if seconds is None else seconds
    letters = choose_fonts([*queries, title])
    height = min(40.0, 0.22 * len(queries) + 0.6)
    figure = Figure(figsize=(9.0, 1.8 + height), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, height])
    above.imshow(values, origin="lower", aspect="auto", cmap="gray_r", extent=(0, end, 0, values.shape[0]))
    above.set_ylabel("band")
    bounds = (0, end, len(queries) - 0.5, -0.5)
    picture = below.imshow(
        table, cmap=make_color_map(), vmin=0, vmax=1, aspect="auto", extent=bounds, interpolation="nearest"
    )
    ticks = letters.make_ticks(queries)
    below.set_yticks(range(len(queries)), labels=ticks.ticks)
    for text in below.get_yticklabels():
        text.set(**letters.style)
    below.set_xlabel("frame" if seconds is None else "time (s)")
    figure.colorbar(picture, ax=[above, below], shrink=0.6, label="weight")
    add_title(figure, title, letters, ticks.legend)
    return figure
