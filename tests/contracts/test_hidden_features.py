"""What a score makes of a hidden key may overflow, though the key itself is small: visible rows stay as they were."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard import (
    Bilinear,
    Causal,
    Cosine,
    Dot,
    FeatureDot,
    Lengths,
    Mask,
    RowTotal,
    Score,
    Sigmoid,
    Softmax,
    Sparsemax,
    attend,
)  # fmt: skip
from regard.algebra.scores.base import DotForm, DotScore
from regard.algebra.scores.features import elu_plus_one, find_held_tensors
from regard.algebra.shapes import Tensor

L, D, E = 5, 3, 2
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
MASKS: dict[str, Mask] = {
    "causal": Causal(),
    "lengths": Lengths(torch.tensor(4)),
    "table": Mask.keep(torch.ones(L, L).tril() > 0),
}


class Exponential(DotScore):
    """A score of one's own with a dot form."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return query.exp() @ key.exp().transpose(-1, -2)

    def dot_form(self, query: Tensor, key: Tensor) -> DotForm:
        return DotForm(query.exp(), key.exp())


class Steep(Score):
    """A score of one's own without any form."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return (query.square() @ key.square().transpose(-1, -2)).exp()


def close_over(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a map that closes over a matrix."""
    return lambda x: (x @ matrix).exp()


SCORES: dict[str, Callable[[torch.dtype], Score]] = {
    "exp": lambda dtype: FeatureDot(torch.exp),
    "closure": lambda dtype: FeatureDot(close_over(torch.eye(D, D + 2, dtype=dtype))),
    "sum": lambda dtype: 0.5 * FeatureDot(torch.exp) + Dot(),
    "own": lambda dtype: Exponential() + 1.0,
    "steep": lambda dtype: Steep(),
}


def compute_outcome(
    score: Score, mask: Mask, normalizer: Any, query: Tensor, key: Tensor, value: Tensor
) -> list[Tensor]:
    """Return output, weights and gradients of the four rows that do not see the last key."""
    tensors = [tensor.clone().requires_grad_() for tensor in (query, key, value)]
    found = attend(*tensors, score=score, mask=mask, normalizer=normalizer)
    rows = slice(None) if isinstance(mask, Lengths) else slice(0, 4)
    gradients = torch.autograd.grad(found.output[rows].double().square().sum(), tensors)
    return [found.output[rows].detach(), found.weights.dense()[rows].detach(), *gradients]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("normalizer", [Softmax(), RowTotal(), Sigmoid(), Sparsemax()], ids=repr)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", SCORES)
def test_a_hidden_key_whose_features_overflow_changes_nothing(
    name: str, mask: str, normalizer: Any, dtype: torch.dtype
) -> None:
    score, (query, key, value) = SCORES[name](dtype), (0.3 * torch.randn(L, size).to(dtype) for size in (D, D, E))
    clean = compute_outcome(score, MASKS[mask], normalizer, query, key, value)
    for content in (12.0, 100.0, 1000.0):  # beyond the exponentials of float16, of float32, of float64
        if name == "steep" and mask != "lengths":  # without a form, only keys that nobody sees are kept from gradients
            continue
        key[4] = content
        for found, true in zip(compute_outcome(score, MASKS[mask], normalizer, query, key, value), clean, strict=True):
            torch.testing.assert_close(found, true, rtol=64 * torch.finfo(dtype).eps, atol=64 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_visible_key_whose_features_overflow_is_read_in_float64(dtype: torch.dtype) -> None:
    query, key, value = (0.3 * torch.randn(L, size).to(dtype) for size in (D, D, E))
    key[2, 0] = 100.0
    found = attend(query, key, value, score=FeatureDot(torch.exp), mask=Causal(), normalizer=RowTotal())
    scores = (query.double().exp() @ key.double().exp().T).tril()
    true = (scores / scores.sum(-1, keepdim=True)) @ value.double()
    torch.testing.assert_close(found.output.double(), true, rtol=0, atol=2 * torch.finfo(dtype).eps)
    assert found.plan.precision == torch.float64


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("score", [Bilinear(D, rank=2), 2.0 * Bilinear(D, rank=2), Cosine(0.1)], ids=repr)
def test_in_float16_a_projected_key_does_not_overflow(score: Score, grad: bool, mask: str) -> None:
    query, key, value = (torch.randn(L, size).half() for size in (D, D, E))
    key[1], key[4] = 60000.0, -60000.0
    with torch.no_grad():
        for parameter in score.parameters():
            parameter.copy_(1.0 + torch.rand_like(parameter))
    score = score.half()
    with torch.set_grad_enabled(grad):
        found = attend(query, key, value, score=score, mask=MASKS[mask])
    exact = attend(*(t.double() for t in (query, key, value)), score=score.double(), mask=MASKS[mask], backend="eager")
    rows = slice(None) if isinstance(score, Cosine) else slice(0, 4)
    torch.testing.assert_close(found.output[rows].double(), exact.output[rows], rtol=0, atol=1e-2)


def test_short_vectors_of_half_precision_have_a_direction() -> None:
    query, key, value = torch.eye(2).half() * 2e-5, torch.eye(2).half() * 2e-5, torch.eye(2).half()
    weights = attend(query, key, value, score=Cosine(1.0)).output.double()
    torch.testing.assert_close(weights, torch.softmax(torch.eye(2, dtype=torch.float64), -1), rtol=0, atol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_small_features_keep_their_digits(dtype: torch.dtype) -> None:
    """elu(x) + 1 is exp(x) below 0: of a single key, however small its feature, all is read."""
    x = torch.tensor([[-2.0], [-8.0]], dtype=dtype)
    torch.testing.assert_close(elu_plus_one(x).double(), x.double().exp(), rtol=2 * torch.finfo(dtype).eps, atol=0)
    one = torch.ones(1, 1, dtype=dtype)
    assert attend(one, x[1:], one, score=FeatureDot(), normalizer=RowTotal()).output.item() == 1.0


def test_features_have_a_gradient_of_one_at_zero() -> None:
    x = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
    elu_plus_one(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([torch.e**-1, 1.0, 1.0]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_map_with_tensors_of_its_own_is_computed_in_their_dtype(dtype: torch.dtype) -> None:
    """Gradients of half precision are computed in float32, to which nothing can cast what a function closes over."""
    score = SCORES["closure"](dtype)
    query, key, value = (torch.randn(L, size).to(dtype).requires_grad_() for size in (D, D, E))
    found = attend(query, key, value, score=score, normalizer=Sparsemax())
    assert found.plan.precision == torch.float32
    assert found.output.dtype == dtype


GLOBAL, DEFAULT = torch.ones(2), torch.ones(4)


def test_tensors_that_a_function_holds_are_found() -> None:
    class Holder:
        def __init__(self) -> None:
            self.matrix = torch.ones(3)

        def apply(self, x: Tensor) -> Tensor:
            return x * self.matrix

        def __call__(self, x: Tensor) -> Tensor:
            return x * self.matrix

    def add(x: Tensor, other: Tensor = DEFAULT) -> Tensor:
        return x + other + GLOBAL

    holder, layer = Holder(), torch.nn.Linear(2, 2)
    assert [len(t) for t in find_held_tensors(add)] == [2, 4]
    assert [t is holder.matrix for t in find_held_tensors(holder.apply)] == [True]
    assert [t is holder.matrix for t in find_held_tensors(holder)] == [True]
    assert len(find_held_tensors(lambda x: layer(x))) == 2

    def stay(x: Tensor) -> Tensor:
        return x * holder.matrix if len(x) else later

    assert find_held_tensors(stay) == []  # one name of its closure is not bound yet, and an object is not searched
    later = torch.ones(1)
    assert [t is later for t in find_held_tensors(stay)] == [True]
    assert find_held_tensors(torch.exp) == find_held_tensors(torch.nn.functional.relu) == find_held_tensors(layer) == []
