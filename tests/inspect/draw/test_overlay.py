"""An image in the light of the weights."""

import numpy as np
import pytest

from regard.errors import InputError
from regard.inspect.draw.glimpses import draw_glimpses
from regard.inspect.draw.overlay import SHADOW, draw_overlay, shade_image

IMAGE = np.full((6, 10, 3), 200, dtype=np.uint8)


def test_a_picture_for_each_word_and_one_without() -> None:
    weights = np.eye(4)[[2, 1, 3]]
    figure = draw_overlay(IMAGE, weights, ["a", "$b$", "狗"])
    assert len(figure.axes) == 5  # and the scale
    assert [axes.get_title() for axes in figure.axes[1:3]] == ["a  1.00", "$b$  1.00"]
    shown = figure.axes[1].images[0].get_array()  # row 1, column 0 of two by two
    assert (shown[4, 2, 0], shown[4, 7, 0], shown[1, 2, 0]) == (200, 200 * SHADOW, 200 * SHADOW)


def test_all_dark_where_nothing_was_looked_at() -> None:
    assert (shade_image(IMAGE, np.zeros((2, 2))) == 200 * SHADOW).all()


def test_weights_that_fit_no_grid_are_refused() -> None:
    with pytest.raises(InputError, match=r"weights of shape \(2, 5\) for 2 words, expected a row for each word over a"):
        draw_overlay(IMAGE, np.ones((2, 5)), ["a", "b"])


def test_glimpses_light_what_was_looked_at_and_shade_the_rest() -> None:
    """Lightness alone tells where: it survives grey printing and color blindness."""
    weights = np.zeros((2, 1, 2, 2))
    weights[0, 0, 0, 1] = weights[1, 0, 1, 0] = 0.7
    figure = draw_glimpses(np.zeros((4, 4)), weights, np.array([[0.25], [1.0]]))
    plain, first, _, second = (np.asarray(axes.images[0].get_array())[..., 0] for axes in figure.axes[:4])
    assert (plain == 255).all()
    assert (first[1, 3], first[1, 0], second[3, 0], second[0, 3]) == (255, 64, 255, 64)
    assert [axes.get_title() for axes in figure.axes[1:4:2]] == ["0.25", "1.00"]
