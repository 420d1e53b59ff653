"""Draw the glimpses at a picture: regions without weight are dark."""

import numpy as np
from matplotlib.figure import Figure

from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.overlay import add_light_scale, shade_image, show_image
from regard.inspect.draw.sheet import SMALL, Sheet
from regard.inspect.draw.words import Language, localize

SMALLEST, LARGEST, ALL = 0.45, 1.2, 7.6  # inches of one picture, and of a row of them
BETWEEN, HEADING, NUMBER = 0.06, 0.16, 0.14  # inches


def draw_glimpses(
    picture: Numbers,
    weights: Numbers,
    gates: Numbers | None = None,
    title: str = "",
    *,
    language: Language = "en",
) -> Figure:
    """Draw the picture on the left, then a row for each step and a column for each head, with the value of its gate.

    `weights` is (step, head, row, column), `gates` is (step, head).
    """
    picture, weights = to_array("picture", picture, axes=2), to_array("weights", weights, axes=4)
    gates = None if gates is None else to_array("gates", gates, axes=2)
    image = np.repeat(255 * (1 - picture[..., None].clip(0, 1)), 3, axis=-1).round().astype(np.uint8)  # ink on paper
    steps, heads = weights.shape[:2]
    letters = choose_fonts([title], language)
    sheet = Sheet(letters)
    across = min(LARGEST, max(SMALLEST, ALL / (heads + 1)))
    side, down = across - BETWEEN, across + (0 if gates is None else HEADING)
    for step in range(steps):
        panel = sheet.add_panel(0.0, -step * down, side, side)
        show_image(panel, image)
        sheet.write(
            localize("glimpse {}", language).format(step), -0.05, -step * down - side / 2, ha="right", va="center"
        )
        for head in range(heads):
            panel = sheet.add_panel((head + 1) * across, -step * down, side, side)
            show_image(panel, shade_image(image, weights[step, head]))
            if gates is not None:
                panel.set_title(f"{gates[step, head]:.2f}", fontsize=SMALL, pad=2)
    for head in range(heads):
        height = 0.03 if gates is None else HEADING
        sheet.write(str(head), (head + 1) * across + side / 2, height, ha="center", va="bottom")
    middle = across + (heads * across - BETWEEN) / 2
    sheet.write(localize("head", language), middle, height + NUMBER, ha="center", va="bottom")
    add_light_scale(sheet, language)
    return sheet.finish(title, [] if gates is None else [localize("above each picture: its gate", language)])
