"""Weights answer for the call that made them, or say which of its tensors was changed since."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard import Bilinear, Mask, Prior, Softmax, Weights, attend
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
        sentence = f"weights: got a {name} that was changed since, expected the tensors of the call as they were; fix: "
        with pytest.raises(StaleError, match=f"^{sentence}"):
            WAYS[way](weights)


def test_a_step_of_an_optimizer_is_a_change() -> None:
    _, given = build_call()
    result = attend(**given)
    result.output.sum().backward()
    torch.optim.SGD(given["score"].parameters(), lr=1.0).step()
    with pytest.raises(StaleError, match="tensor of the score"):
        result.weights.dense()
