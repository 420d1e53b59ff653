"""Padding that could do harm is cleaned; padding that could not is left where it lies."""

import pytest
import torch

from regard import Lengths
from regard.layers.memory import FULL, zero_harmful_padding

B, S, D = 2, 5, 3
REAL = Lengths(torch.tensor([5, 2]))


def test_what_is_moderate_is_not_copied() -> None:
    source = torch.randn(B, S, D)
    assert zero_harmful_padding(source, REAL) is source
    assert zero_harmful_padding(source, FULL) is source


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_what_could_overflow_is_cleaned_in_the_padding_alone(value: float) -> None:
    """1e30 is finite, but the square of it in a norm is not."""
    source = torch.randn(B, S, D)
    source[1, 3] = value
    found = zero_harmful_padding(source, REAL)
    assert (found[1, 2:] == 0).all()
    assert found[0].equal(source[0])
    assert found[1, :2].equal(source[1, :2])
