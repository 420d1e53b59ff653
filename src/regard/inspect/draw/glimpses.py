"""Draw the glimpses at a picture: regions without weight are dark."""

from typing import Any

import numpy as np
from jaxtyping import UInt8
from matplotlib.figure import Figure

from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.overlay import shade_image

COLUMN = 1.5  # inches


def draw_glimpses(picture: Numbers, weights: Numbers, gates: Numbers | None = None) -> Figure:
    """Draw the picture on the left, then a row for each step and a column for each head, with the value of its gate.

    `weights` is (step, head, row, column), `gates` is (step, head).
    """
    picture, weights = to_array("picture", picture, axes=2), to_array("weights", weights, axes=4)
    gates = None if gates is None else to_array("gates", gates, axes=2)
    steps, heads = weights.shape[:2]
    figure = Figure(figsize=(COLUMN * (heads + 1), COLUMN * steps + 0.3), layout="constrained")
    axes = figure.subplots(steps, heads + 1, squeeze=False)
    image = np.repeat(255 * (1 - picture[..., None].clip(0, 1)), 3, axis=-1).round().astype(np.uint8)  # ink on paper
    for step in range(steps):
        show_image(axes[step][0], image)
        axes[step][0].set_ylabel(f"glimpse {step + 1}", fontsize="small")
        for head in range(heads):
            axis = axes[step][head + 1]
            show_image(axis, shade_image(image, weights[step, head]))
            gate = "" if gates is None else f", gate {gates[step, head]:.2f}"
            axis.set_title(f"head {head + 1}{gate}", fontsize="x-small")
    return figure


def show_image(axis: Any, image: UInt8[np.ndarray, "height width 3"]) -> None:
    """Show an image without ticks."""
    axis.imshow(image, interpolation="nearest")
    axis.set(xticks=[], yticks=[])
