"""Draw attention over an image: once for each word, regions without weight in shadow."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.sheet import TEXT, Sheet
from regard.inspect.draw.words import Language, localize

ACROSS = 5  # pictures in a line
SIDE, BETWEEN, HEADING = 1.35, 0.1, 0.24  # inches
LONGEST = 14  # cells of a word above its picture
SHADOW = 0.25  # brightness of regions without weight


def draw_overlay(
    image: Numbers,
    weights: Numbers,
    words: Sequence[str],
    *,
    title: str = "",
    grid: tuple[int, int] | None = None,
    language: Language = "en",
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
    letters = choose_fonts([*words, title], language)
    sheet = Sheet(letters)
    high = SIDE * min(2.0, max(0.5, image.shape[0] / image.shape[1]))
    shaded = [shade_image(image, row.reshape(down, across)) for row in weights]
    for place, picture in enumerate([image, *shaded]):
        line, column = divmod(place, ACROSS)
        panel = sheet.add_panel(column * (SIDE + BETWEEN), -line * (high + HEADING), SIDE, high)
        show_image(panel, picture)
    headings = letters.make_ticks(words, longest=LONGEST)
    for panel, word, row in zip(sheet.figure.axes[1:], headings.ticks, weights, strict=True):
        panel.set_title(f"{word}  {row.max():.2f}", fontsize=TEXT, pad=3, **letters.style)
    add_light_scale(sheet, language)
    return sheet.finish(title, letters.explain(headings.legend, language))


def show_image(panel: Axes, image: np.ndarray) -> None:
    """Show an image without ticks and frame."""
    panel.imshow(image, interpolation="nearest", aspect="auto")
    panel.set_axis_off()


def add_light_scale(sheet: Sheet, language: Language) -> None:
    """Draw the brightness of regions and what it means."""
    grays = np.linspace(SHADOW, 1, 64)[:, None].repeat(3, 1)
    colors = ScalarMappable(Normalize(0, 1), ListedColormap(grays))
    name = localize("relative weight", language)
    sheet.add_color_scale(colors, ColorScale(largest=1.0), name, *sheet.figure.axes)


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
