"""Cosine similarity."""

import math

import pytest
import torch

from regard import Cosine, attend
from regard.algebra.shapes import Tensor

HALF_ROOT = math.sqrt(0.5)


def test_it_is_the_cosine_of_the_angle_over_the_temperature() -> None:
    query = torch.tensor([[2.0, 0.0]])
    key = torch.tensor([[7.0, 0.0], [3.0, 3.0], [0.0, 5.0], [-1.0, 1.0], [-0.1, 0.0]])
    expected = torch.tensor([[1.0, HALF_ROOT, 0.0, -HALF_ROOT, -1.0]])
    assert torch.allclose(Cosine()(query, key), expected)
    assert torch.allclose(Cosine(temperature=0.1)(query, key), 10 * expected)


def test_lengths_do_not_matter() -> None:
    """From vectors as short as 1e-7 to ones as long as 1e7, by the definition and by the dot form."""
    query, key, score = torch.randn(5, 11), torch.randn(7, 11), Cosine()
    plain = score(query, key)
    for factor in (1e-7, 1e7):
        assert torch.allclose(score(query * factor, key * factor), plain, rtol=0, atol=1e-6)
        assert torch.allclose(score.dot_form(query * factor, key * factor).compute_scores(), plain, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_a_zero_vector_has_no_direction_and_scores_zero(dtype: torch.dtype) -> None:
    query, key = torch.zeros(1, 3, dtype=dtype), torch.tensor([[0.0, 0, 0], [1, 2, 3]], dtype=dtype)
    score = Cosine()
    assert score(query, key).tolist() == [[0.0, 0.0]]
    assert score.dot_form(query, key).compute_scores().tolist() == [[0.0, 0.0]]
    assert score(key, query).tolist() == [[0.0], [0.0]]


def test_a_zero_vector_leaves_every_gradient_finite() -> None:
    query = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    key = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    attend(query, key, torch.randn(5, 2, dtype=torch.float64), score=Cosine()).output.sum().backward()
    for tensor in (query, key):
        assert tensor.grad is not None
        assert torch.isfinite(tensor.grad).all()


def test_each_head_has_its_own_temperature() -> None:
    heads = torch.tensor([0.5, 0.25, 0.125])
    query, key = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11)
    together, plain = Cosine(heads)(query, key), Cosine()(query, key)
    for head, temperature in enumerate(heads.tolist()):
        assert torch.allclose(together[:, head], plain[:, head] / temperature, atol=1e-6)


def test_a_learned_temperature_is_a_parameter() -> None:
    learned: list[Tensor] = list(Cosine.learned(0.3, heads=3).parameters())
    assert [tuple(p.shape) for p in learned] == [(3,)]
    assert learned[0].tolist() == pytest.approx([0.3] * 3)
    assert [tuple(p.shape) for p in Cosine.learned().parameters()] == [()]
