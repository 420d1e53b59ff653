"""Draw attention over an image: once for each word, regions without weight in shadow."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.axes import add_title
from regard.inspect.draw.fonts import choose_fonts

ACROSS = 5  # pictures in a line
SIDE = 2.0  # inches
SHADOW = 0.25  # brightness of regions without weight


def draw_overlay(
    image: Numbers,
    weights: Numbers,
    words: Sequence[str],
    *,
    title: str = "",
    grid: tuple[int, int] | None = None,
) -> Figure:
    """Draw the image once as it is, then once for each word, bright where the weights of that word lie.

    `weights` has a row for each word and a column for each region of a grid, from the top left on, which is square
    unless its rows and columns are given. Each picture is scaled to its largest weight, which stands beside the word.
    """
    image, weights = to_array("image", image), to_array("weights", weights, axes=2)
    side = round(weights.shape[-1] ** 0.5)
    down, across = grid or (side, side)
    if weights.ndim != 2 or down * across != weights.shape[-1] or len(words) != len(weights):
        got = f"weights of shape {weights.shape} for {len(words)} words"
        shape = "a square grid" if grid is None else f"a grid of {down} × {across}"
        raise wrong("weights", got, f"a row for each word over {shape}", "give one weight for each region")
    letters = choose_fonts([*words, title])
    columns = min(ACROSS, len(words) + 1)
    rows = -(-(len(words) + 1) // columns)
    figure = Figure(figsize=(columns * SIDE, rows * (SIDE + 0.3)), layout="constrained")
    figure.subplots(rows, columns, squeeze=False)
    panels = figure.axes
    for panel in panels:
        panel.set_axis_off()
    panels[0].imshow(image, interpolation="nearest")
    for panel, word, row in zip(panels[1:], words, weights, strict=False):
        panel.imshow(shade_image(image, row.reshape(down, across)), interpolation="nearest")
        label = f"{letters.spell_missing(word)}  {row.max():.2f}"
        panel.set_title(label, fontsize=9, **letters.style)
    add_title(figure, title, letters)
    return figure


def shade_image(image: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Return the image with the brightness of a grid of weights, each over its own region.

    >>> shade_image(np.full((2, 2, 3), 200, dtype=np.uint8), np.array([[0.0, 1.0]]).repeat(2, 0))[0, :, 0]
    array([ 50, 200], dtype=uint8)
    """
    top = grid.max()
    shares = grid / top if top > 0 else grid
    rows = np.arange(image.shape[0]) * grid.shape[0] // image.shape[0]
    columns = np.arange(image.shape[1]) * grid.shape[1] // image.shape[1]
    light = SHADOW + (1 - SHADOW) * shares[rows][:, columns]
    return np.asarray((image * light[..., None]).round(), dtype=np.uint8)
