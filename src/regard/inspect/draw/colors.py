"""Color scales whose lightness only rises or only falls, for grey printing and color blindness.

`web/static/colors.js` has the same formulas; a test compares the two.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

STEPS = 256
Kind = str  # "weights" from 0 to 1, "difference" from −1 to 1


class ColorPath(NamedTuple):
    """A path through OKLab: lightness and hue from one end to the other, chroma at both ends and in the middle."""

    lightness: tuple[float, float]
    hue: tuple[float, float]
    chroma: tuple[float, float, float]


LIGHT = ColorPath((1.0, 0.3), (225, 268), (0.0, 0.14, 0.1))
DARK = ColorPath((0.23, 0.96), (268, 100), (0.015, 0.13, 0.09))


class DifferencePath(NamedTuple):
    """Two paths from the paper: lightness of the least, of none and of the most; hues and chroma of both ends."""

    lightness: tuple[float, float, float]
    hue: tuple[float, float]
    chroma: float


# Nothing has the color of the paper; less is bluer and darker than more, which also grey printing shows.
LIGHT_DIFFERENCE = DifferencePath((0.36, 1.0, 0.6), (262, 50), 0.16)
DARK_DIFFERENCE = DifferencePath((0.6, 0.209, 0.86), (255, 75), 0.15)
TO_CONES = np.array(
    [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.291485548]]
)
TO_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
    ]
)


@lru_cache
def build_palette(kind: Kind = "weights", *, dark: bool = False) -> UInt8[np.ndarray, "256 3"]:
    """Return 256 colors: of weights from 0 to 1, or of differences from −1 to 1."""
    amounts = np.linspace(0, 1, STEPS)
    if kind == "difference":
        lightness, hue, vivid = DARK_DIFFERENCE if dark else LIGHT_DIFFERENCE
        hues = np.where(amounts < 0.5, float(hue[0]), float(hue[1]))
        return oklab_to_rgb(np.interp(amounts, [0, 0.5, 1], lightness), vivid * np.abs(2 * amounts - 1), hues)
    path = DARK if dark else LIGHT
    chroma = np.interp(amounts, [0, 0.5, 1], path.chroma)
    return oklab_to_rgb(np.interp(amounts, [0, 1], path.lightness), chroma, np.interp(amounts, [0, 1], path.hue))


def make_color_map(kind: Kind = "weights") -> "ListedColormap":
    """Return the colors for light paper, for matplotlib."""
    from matplotlib.colors import ListedColormap  # the colors themselves need no extra

    return ListedColormap(build_palette(kind) / 255, name=f"regard {kind}")


Numbers = Float[np.ndarray, " step"]


def oklab_to_rgb(lightness: Numbers, chroma: Numbers, hue: Numbers) -> UInt8[np.ndarray, "step 3"]:
    """Return colors of OKLab (Ottosson 2020) as bytes of sRGB; chroma shrinks until the color exists."""
    while True:
        linear = oklab_to_linear_rgb(lightness, chroma, np.radians(hue))
        outside = ((linear < -1e-4) | (linear > 1.0001)).any(1) & (chroma > 0)
        if not outside.any():
            break
        chroma = np.where(outside, np.maximum(0, chroma - 0.004), chroma)
    linear = linear.clip(0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.round(255 * encoded).astype(np.uint8)


def oklab_to_linear_rgb(lightness: Numbers, chroma: Numbers, angle: Numbers) -> Float[np.ndarray, "step 3"]:
    """Return colors of OKLab as linear RGB."""
    lab = np.stack([lightness, chroma * np.cos(angle), chroma * np.sin(angle)], 1)
    light: Float[np.ndarray, "step 3"] = (lab @ TO_CONES.T) ** 3 @ TO_RGB.T
    return light
