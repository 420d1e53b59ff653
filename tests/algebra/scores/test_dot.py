"""Dot and scaled dot product."""

import math
import re

import pytest
import torch

from regard import Dot, InputError, ScaledDot, attend

QUERY = torch.tensor([[1.0, 2.0, 3.0]])
KEYS = torch.tensor([[1.0, 0.0, -1.0], [2.0, 2.0, 2.0]])


def test_dot_is_the_sum_of_products() -> None:
    assert Dot()(QUERY, KEYS).tolist() == [[1.0 - 3.0, 2.0 + 4.0 + 6.0]]


def test_scaled_dot_divides_by_the_root_of_the_width() -> None:
    expected = [[-2.0 / math.sqrt(3), 12.0 / math.sqrt(3)]]
    assert torch.allclose(ScaledDot()(QUERY, KEYS), torch.tensor(expected))


def test_scaled_dot_keeps_the_variance_at_one() -> None:
    """n products of independent normals have variance 1 each; the mean of m squares has variance (2 + 12 / n) / m."""
    width, count = 101, 211
    scores = ScaledDot()(torch.randn(count, width, dtype=torch.float64), torch.randn(count, width, dtype=torch.float64))
    diagonal = scores.diagonal()  # pairs that share nothing
    bound = 5 * math.sqrt((2 + 12 / width) / count)
    assert abs(float(diagonal.square().mean()) - 1) < bound


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("score", [Dot(), ScaledDot()], ids=repr)
def test_unequal_widths_are_one_sentence(score: Dot | ScaledDot) -> None:
    sentence = (
        "key: got width 13, expected the width of the query, 11; "
        "fix: project them to one width, or use a score that takes two: additive, concat, bilinear"
    )
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attend(torch.ones(5, 11), torch.ones(7, 13), torch.ones(7, 3), score=score)
