"""Where each glimpse at a picture looked: what was not looked at is dark."""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

COLUMN = 1.5  # inches


def glimpses(
    picture: Float[np.ndarray, "height width"],
    weights: Float[np.ndarray, "steps heads rows columns"],
    gates: Float[np.ndarray, "steps heads"] | None = None,
) -> Figure:
    """The picture on the left; then a row for each step and a column for each head, with how much its gate let in."""
    steps, heads = weights.shape[:2]
    figure = Figure(figsize=(COLUMN * (heads + 1), COLUMN * steps + 0.3), layout="constrained")
    axes = figure.subplots(steps, heads + 1, squeeze=False)
    for step in range(steps):
        show(axes[step][0], picture)
        axes[step][0].set_ylabel(f"glimpse {step + 1}", fontsize="small")
        for head in range(heads):
            axis = axes[step][head + 1]
            show(axis, picture)
            overlay(axis, weights[step, head], picture.shape)
            said = "" if gates is None else f", gate {gates[step, head]:.2f}"
            axis.set_title(f"head {head + 1}{said}", fontsize="x-small")
    return figure


def show(axis: Any, picture: Float[np.ndarray, "height width"]) -> None:
    axis.imshow(picture, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    axis.set(xticks=[], yticks=[])


def overlay(axis: Any, weights: Float[np.ndarray, "rows columns"], shape: tuple[int, ...]) -> None:
    """The weights in color over the whole picture, the largest opaque: most are near 0 and would tint everything."""
    extent = (-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5)
    share = weights / max(float(weights.max()), 1e-12)
    axis.imshow(weights, cmap="autumn_r", alpha=0.75 * share, extent=extent, interpolation="nearest")
