"""Feature maps for linear attention."""

import math

import torch

from regard import Causal, FeatureDot, RowTotal, attend
from regard.algebra.shapes import Tensor


def test_elu_plus_one_is_exp_below_zero_and_one_more_above() -> None:
    found = FeatureDot()(torch.tensor([[-1.0, 2.0]]), torch.tensor([[0.0, 0.0], [1.0, -2.0]]))
    first, second = math.exp(-1), 3.0
    expected = [[first + second, first * 2 + second * math.exp(-2)]]
    assert torch.allclose(found, torch.tensor(expected))


def test_a_constant_feature_gives_the_running_mean() -> None:
    """All scores alike: with the row total, query i reads the mean of the first i + 1 values."""

    def map_to_ones(x: Tensor) -> Tensor:
        return torch.ones_like(x)

    query, value = torch.randn(7, 3, dtype=torch.float64), torch.randn(7, 5, dtype=torch.float64)
    attended = attend(query, query, value, score=FeatureDot(map_to_ones), normalizer=RowTotal(), mask=Causal())
    assert attended.plan.backend == "linear"
    means = value.cumsum(0) / torch.arange(1, 8)[:, None]
    assert torch.allclose(attended.output, means, rtol=0, atol=1e-14)


def test_a_learned_map_is_a_part_of_the_score() -> None:
    """A module as a map: its parameters belong to the score, and get a gradient in every path."""
    score = FeatureDot(torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Softplus()))
    assert len(list(score.parameters())) == 2
    query, key, value = torch.randn(7, 5), torch.randn(11, 5), torch.randn(11, 2)
    grads = []
    for backend in ("eager", "linear", "stream"):
        output = attend(query, key, value, score=score, normalizer=RowTotal(), backend=backend).output
        grads.append(torch.autograd.grad(output.square().sum(), list(score.parameters())))
    for found in grads[1:]:
        for left, right in zip(found, grads[0], strict=True):
            assert torch.allclose(left, right, rtol=1e-4, atol=1e-5)
