"""Colors that survive grey printing and color blindness, by definition and not by looking."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from regard.inspect.draw.alignment import draw_alignment
from regard.inspect.draw.colors import build_palette, make_color_map

KINDS = [("weights", False, -1), ("weights", True, 1)]
# How much of linear red, green and blue each kind of missing cone leaves (Viénot, Brettel and Mollon 1999).
BLIND = {
    "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}


def compute_lightness(linear: np.ndarray) -> np.ndarray:
    """Return L* of CIE 1976, from linear light."""
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.where(luminance > 216 / 24389, 116 * np.cbrt(luminance) - 16, luminance * 24389 / 27)


def to_linear(colors: np.ndarray) -> np.ndarray:
    share = colors / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize(("kind", "dark", "way"), KINDS)
def test_lightness_goes_one_way_in_grey_and_for_the_color_blind(kind: str, dark: bool, way: int) -> None:
    linear = to_linear(build_palette(kind, dark=dark).astype(float))
    seen = {"grey": linear} | {name: (linear @ np.array(part).T).clip(0, 1) for name, part in BLIND.items()}
    for name, own in seen.items():
        steps = way * np.diff(compute_lightness(own)[::5])  # single steps are rounded to bytes
        assert steps.min() > 0, name
        assert abs(compute_lightness(own)[-1] - compute_lightness(own)[0]) > 50, name


@pytest.mark.parametrize("dark", [False, True])
def test_no_difference_has_the_color_of_the_paper_and_both_ways_lead_away_from_it(dark: bool) -> None:
    palette = build_palette("difference", dark=dark).astype(float)
    paper = np.array([0x16, 0x18, 0x1B] if dark else [255, 255, 255])
    assert np.abs(palette[127:129] - paper).max() <= 5
    linear = to_linear(palette)
    seen = {"grey": linear} | {name: (linear @ np.array(part).T).clip(0, 1) for name, part in BLIND.items()}
    for name, own in seen.items():
        away = np.abs(compute_lightness(own) - compute_lightness(own)[127:129].mean())[::5]
        assert (np.diff(away[:25]) < 0).all(), name
        assert (np.diff(away[27:]) > 0).all(), name
        assert abs(compute_lightness(own)[-1] - compute_lightness(own)[0]) > 15, (
            name
        )  # less and more are told apart in grey too


def test_nothing_is_white_on_paper() -> None:
    assert build_palette("weights")[0].tolist() == [255, 255, 255]


def test_pictures_are_drawn_in_these_colors() -> None:
    weights = np.array([[0.0, 1.0], [0.5, 0.25]])
    figure = draw_alignment(weights, ["a", "b"], ["c", "d"])
    picture = figure.axes[0].images[0]
    drawn = picture.to_rgba(weights, bytes=True)[..., :3]
    expected = build_palette("weights")[np.minimum(255, (weights * 256).astype(int))]
    assert (drawn == expected).all()
    assert to_rgb(make_color_map()(0.0)) == (1.0, 1.0, 1.0)
