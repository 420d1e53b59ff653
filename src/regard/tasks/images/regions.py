"""The regions of a square grid, row by row, and predictions that attend to them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.algebra.shapes import Float, Tensor
from regard.inspect.draw.chapters import Regions
from regard.inspect.draw.words import Language
from regard.tasks.images.photos import make_thumbnail
from regard.tasks.prediction import LabeledWeights, Prediction

if TYPE_CHECKING:
    from PIL.Image import Image


def name_regions(regions: int) -> list[str]:
    """Return row and column of each region of a square grid, from 0.

    >>> name_regions(4)
    ['0,0', '0,1', '1,0', '1,1']
    """
    side = round(regions**0.5)
    return [f"{row},{column}" for row in range(side) for column in range(side)]


def build_region_prediction(
    text: str,
    values: Mapping[str, Any],
    photo: "Image",
    weights: Float[Tensor, "row region"],
    rows: Sequence[str],
) -> Prediction:
    """Return a prediction whose attention is drawn over an image, once for each row of weights."""
    regions, table = weights.shape[1], weights.tolist()
    side = round(regions**0.5)
    values = {**values, "weights": [[round(weight, 6) for weight in row] for row in table]}
    labeled = LabeledWeights(table, name_regions(regions), rows, f"attention over {side} × {side} regions: row,column")
    draw = partial(draw_regions, photo, weights, rows)
    return Prediction(text, values, draw, labeled, medium=Regions(make_thumbnail(photo), (side, side)))


def draw_regions(
    photo: "Image",
    weights: Float[Tensor, "row region"],
    rows: Sequence[str],
    title: str = "",
    language: Language = "en",
) -> Any:
    """Draw the image, and the weights of each row over it."""
    from regard.inspect.draw.overlay import draw_overlay

    return draw_overlay(np.asarray(photo), weights.cpu().numpy(), rows, title=title, language=language)
