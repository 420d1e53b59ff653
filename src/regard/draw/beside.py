"""Attention over what is no text: the regions of a picture, the time of a sound."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure

from regard.draw.axes import checked, entitle
from regard.draw.colors import color_map
from regard.draw.fonts import lettering, shortened
from regard.errors import wrong

ACROSS = 5  # pictures in a row
HIDDEN = 0.78  # how much of a region that got nothing is covered


def over_image(
    pixels: UInt8[np.ndarray, "height width 3"],
    weights: Float[np.ndarray, "query region"],
    grid: tuple[int, int],
    queries: Sequence[str],
    title: str = "",
) -> Figure:
    """The picture once for each query, dark where it did not look; `grid` regions down and across, row by row."""
    table = checked(weights)
    if grid[0] * grid[1] != table.shape[1]:
        raise wrong(
            "grid", f"{grid[0]} × {grid[1]}", f"{table.shape[1]} regions", "give rows and columns of the regions"
        )
    if len(queries) != table.shape[0]:
        raise wrong("queries", f"{len(queries)} labels", str(table.shape[0]), "give one for each query")
    letters = lettering([*queries, title])
    columns = min(ACROSS, len(queries))
    rows = -(-len(queries) // columns)
    figure = Figure(figsize=(2.1 * columns, 2.3 * rows + 0.3), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    ticks = letters.labels(queries)
    for place, axes in enumerate(panels):
        axes.set_axis_off()
        if place >= len(queries):
            continue
        shares = table[place] / (table[place].max() or 1.0)
        axes.imshow(pixels)
        cover = np.zeros((*grid, 4))
        cover[..., 3] = HIDDEN * (1 - shares.reshape(grid))
        axes.imshow(cover, extent=(-0.5, pixels.shape[1] - 0.5, pixels.shape[0] - 0.5, -0.5), interpolation="nearest")
        axes.set_title(ticks.ticks[place], parse_math=False, fontfamily=list(letters.families), fontsize="medium")
    entitle(figure, title, letters, [", ".join(ticks.legend)] if ticks.legend else [])
    return figure


def over_sound(
    values: Float[np.ndarray, "bin frame"],
    weights: Float[np.ndarray, "query stretch"],
    queries: Sequence[str],
    seconds: float | None = None,
    title: str = "",
) -> Figure:
    """The spectrogram above, low frequencies at the bottom, and under it where in time each query looked."""
    table = checked(weights)
    if len(queries) != table.shape[0]:
        raise wrong("queries", f"{len(queries)} labels", str(table.shape[0]), "give one for each query")
    end = float(values.shape[1]) if seconds is None else seconds
    letters = lettering([*queries, title])
    height = min(40.0, 0.22 * len(queries) + 0.6)
    figure = Figure(figsize=(9.0, 1.8 + height), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.6, height])
    above.imshow(values, origin="lower", aspect="auto", cmap="gray_r", extent=(0, end, 0, values.shape[0]))
    above.set_ylabel("band")
    bounds = (0, end, len(queries) - 0.5, -0.5)
    picture = below.imshow(
        table, cmap=color_map(), vmin=0, vmax=1, aspect="auto", extent=bounds, interpolation="nearest"
    )
    ticks = letters.labels([shortened(query) for query in queries])
    below.set_yticks(range(len(queries)), labels=ticks.ticks)
    for text in below.get_yticklabels():
        text.set(fontfamily=list(letters.families), parse_math=False)
    below.set_xlabel("frame" if seconds is None else "time (s)")
    figure.colorbar(picture, ax=[above, below], shrink=0.6, label="weight")
    entitle(figure, title, letters, [", ".join(ticks.legend)] if ticks.legend else [])
    return figure
