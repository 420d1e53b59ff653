"""Where a listener listened: the spectrogram of a sound, and under it a row of weights for each symbol."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from regard.inspect.draw.spectrogram import draw_spectrogram


def draw_speech_attention(
    frames: Float[np.ndarray, "frame filter"],
    weights: Float[np.ndarray, "token position"],
    tokens: Sequence[str],
    seconds: float,
) -> Figure:
    """Both over the same time axis, which is `seconds` long; white is 0, the darkest is 1."""
    return draw_spectrogram(frames.T, weights, tokens, seconds)
