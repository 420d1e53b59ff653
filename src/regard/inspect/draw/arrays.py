"""Numbers to draw, from whatever holds them: arrays, tensors with or without gradients, weights, lists."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from regard.algebra.shapes import describe
from regard.errors import wrong, wrong_kind


@runtime_checkable
class WeightsHolder(Protocol):
    """What gives its weights when asked: the `Weights` of a call, an attention of a recording."""

    def dense(self) -> Tensor:
        """Return all weights."""


Numbers = np.ndarray | Tensor | WeightsHolder | Sequence[Any]


def to_array(name: str, numbers: Numbers, axes: int | None = None) -> np.ndarray:
    """Return the numbers as an array; with `axes`, drop leading axes of size one until that many are left.

    >>> to_array("weights", torch.ones(1, 1, 2, 3, requires_grad=True), axes=2).shape
    (2, 3)
    """
    held = numbers.dense() if isinstance(numbers, WeightsHolder) and not isinstance(numbers, Tensor) else numbers
    if isinstance(held, Tensor):
        held = held.detach().cpu()
        held = (held.float() if held.dtype is torch.bfloat16 else held).numpy()
    try:
        array = np.asarray(held)
        plain = array.dtype.kind in "biuf"
    except ValueError:  # lists of different lengths
        plain = False
    if not plain:
        expected = "an array, a tensor, the weights of a call, or a list of numbers"
        raise wrong_kind(name, describe(numbers), expected, "pass result.weights, or an array of numbers")
    while axes is not None and array.ndim > axes and array.shape[0] == 1:
        array = array[0]
    return array


def to_heads(name: str, numbers: Numbers) -> np.ndarray:
    """Return the heads of one item, `(head, query, key)`; a table without heads is one head."""
    array = to_array(name, numbers, axes=3)
    if array.ndim not in (2, 3):
        shape = " × ".join(map(str, array.shape)) or "one number"
        raise wrong(name, shape, "heads × queries × keys", "take one item of the batch, such as weights[0]")
    return array[None] if array.ndim == 2 else array
