"""Weights answer for the call that made them, or say what of it was changed since."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard import (
    Additive,
    Bilinear,
    Capped,
    Causal,
    ChunkwiseMonotonic,
    Cosine,
    Dot,
    Entmax,
    Gaussian,
    LocalGaussian,
    Mask,
    Prior,
    ScaledDot,
    Sigmoid,
    Softmax,
    Weights,
    attend,
)  # fmt: skip
from regard.algebra.pairs import Pairs
from regard.errors import StaleError

L, S, D = 5, 7, 3
WAYS: dict[str, Callable[[Weights], object]] = {
    "dense": lambda weights: weights.dense(),
    "index": lambda weights: weights[0],
    "tile": lambda weights: weights.tile(slice(0, 2), slice(0, 3)),
    "summary": lambda weights: weights.summary(2),
    "top": lambda weights: weights.top(2),
    "entropy": lambda weights: weights.entropy(),
    "received": lambda weights: weights.received_weight(),
}


def build_call() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors of a call by the name that the error gives them, and the arguments."""
    score, prior, cells = Bilinear(D, D), torch.randn(S), torch.rand(1, L, S) < 0.9
    temperature = torch.nn.Parameter(torch.ones(()))
    tensors = {"query": torch.randn(1, L, D), "key": torch.randn(1, S, D), "value": torch.randn(1, S, D)}
    parts = {"score": score, "bias": Prior(prior), "mask": Mask.keep(cells), "normalizer": Softmax(temperature)}
    changed = {"tensor of the score": score.weight, "tensor of the bias": prior, "tensor of the mask": cells}
    return tensors | changed | {"tensor of the normalizer": temperature}, tensors | parts


@pytest.mark.parametrize("way", WAYS)
def test_whoever_asks_after_a_change_is_told_what_was_changed(way: str) -> None:
    for name in build_call()[0]:
        tensors, given = build_call()
        weights = attend(**given).weights
        WAYS[way](weights)  # fresh
        with torch.no_grad():
            tensors[name].logical_not_() if tensors[name].dtype == torch.bool else tensors[name].mul_(3)
        sentence = f"weights: got a {name} that was changed since, expected the call as it was; fix: "
        with pytest.raises(StaleError, match=f"^{sentence}"):
            WAYS[way](weights)


def test_a_step_of_an_optimizer_is_a_change() -> None:
    _, given = build_call()
    result = attend(**given)
    result.output.sum().backward()
    torch.optim.SGD(given["score"].parameters(), lr=1.0).step()
    with pytest.raises(StaleError, match="tensor of the score"):
        result.weights.dense()


NUMBERS = {
    "temperature": lambda: Softmax(1.5),
    "alpha": lambda: Entmax(1.5),
    "shift": lambda: Sigmoid(0.5),
    "deviation": lambda: LocalGaussian(torch.arange(float(L)), 1.5),
    "width": lambda: ChunkwiseMonotonic(3),
    "bandwidth": lambda: Gaussian(0.8),
    "cap": lambda: Capped(ScaledDot(), 2.0),
    "factor": lambda: Cosine(0.3) + 2.0 * Dot(),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.inference_mode])
def test_a_number_of_a_part_that_is_changed_is_a_change(name: str, mode: Callable[[], Any]) -> None:
    part, (_, given) = NUMBERS[name](), build_call()
    family = "score" if name in ("bandwidth", "cap", "factor") else "normalizer"
    tensors = {name: given[name].detach() for name in ("query", "key", "value")}
    with mode():
        weights = attend(**tensors, **{family: part}).weights
        weights.dense()
        holder = part.right if name == "factor" else part
        setattr(holder, name, getattr(holder, name) * 2)
        with pytest.raises(StaleError, match=f"^weights: got a number of the {family} that was changed since"):
            weights.dense()


def test_a_mask_of_ones_own_that_is_changed_is_a_change() -> None:
    class Near(Mask):
        def __init__(self) -> None:
            self.radius = 1

        def allows(self, pairs: Pairs) -> torch.Tensor:
            return (pairs.column - pairs.position).abs() <= self.radius

    mask, (_, given) = Near(), build_call()
    weights = attend(**given | {"mask": mask & Causal()}).weights
    mask.radius = 2
    with pytest.raises(StaleError, match="number of the mask"):
        weights.dense()


def test_a_part_that_is_cast_is_a_change() -> None:
    _, given = build_call()
    weights = attend(**given).weights
    given["score"].double()
    with pytest.raises(StaleError, match="tensor of the score"):
        weights.dense()


def test_training_mode_is_not_a_change() -> None:
    score, (_, given) = Additive(D), build_call()
    weights = attend(**given | {"score": score}).weights
    score.eval()
    assert weights.dense().shape == (1, L, S)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda weights: pickle.loads(pickle.dumps(weights))])
def test_a_copy_is_as_fresh_as_what_it_was_copied_from(duplicate: Callable[[Weights], Weights]) -> None:
    tensors, given = build_call()
    with torch.no_grad():  # torch refuses to copy tensors that have a graph
        weights = attend(**given).weights
    copied = duplicate(weights)
    assert torch.equal(copied.dense(), weights.dense())
    assert copied.plan == weights.plan
    with torch.no_grad():
        copied.call.key.mul_(3)
    with pytest.raises(StaleError, match="key"):
        copied.dense()
    assert (duplicate is copy.copy) == (copied.call.key is tensors["key"])
    with torch.no_grad():
        tensors["query"].mul_(3)
    with pytest.raises(StaleError):
        duplicate(weights)
