"""Where a listener listened: the spectrogram of a sound, and under it a row of weights for each symbol."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from regard.draw.alignment import CELL, LARGEST, visible
from regard.draw.fonts import lettering

INCHES = 3.0  # for a second of sound


def listening(
    frames: Float[np.ndarray, "frame filter"],
    weights: Float[np.ndarray, "token position"],
    tokens: Sequence[str],
    seconds: float,
) -> Figure:
    """Both over the same time axis, which is `seconds` long; white is 0, the darkest is 1."""
    letters = lettering(tokens)
    width = min(LARGEST, max(6.0, INCHES * seconds))
    figure = Figure(figsize=(width, min(LARGEST, 2.4 + CELL * len(tokens))), layout="constrained")
    sound, looks = figure.subplots(2, 1, sharex=True, height_ratios=[2.0, CELL * len(tokens)])
    sound.imshow(frames.T, origin="lower", aspect="auto", extent=(0.0, seconds, 0.0, frames.shape[1]), cmap="magma")
    sound.set_ylabel("mel band")
    # The last position may reach beyond the end: it stands for as much time as every other.
    picture = looks.imshow(
        weights,
        cmap="Blues",
        vmin=0.0,
        vmax=1.0,
        aspect="auto",
        interpolation="nearest",
        extent=(0.0, seconds, len(tokens) - 0.5, -0.5),
    )
    looks.set_yticks(range(len(tokens)), labels=visible(tokens, letters))
    for label in looks.get_yticklabels():
        label.set(fontfamily=list(letters.families), parse_math=False)
    looks.set_xlabel("seconds")
    figure.colorbar(picture, ax=looks, label="weight")
    return figure
