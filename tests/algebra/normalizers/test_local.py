"""Luong's local-p: softmax times a Gaussian, not renormalized."""

import math
import re

import pytest
import torch

from regard import CenteredWindow, Dense, InputError, LocalGaussian, attend
from regard.algebra.shapes import Tensor
from regard.compute.planning import BackendName

L, S, D, E = 5, 11, 3, 2
BACKENDS: list[BackendName] = ["eager", "sdpa", "local", "stream"]


def attend_in_loops(query: Tensor, key: Tensor, value: Tensor, center: Tensor, radius: int) -> Tensor:
    """Luong et al. 2015, eq. 7 and 10, in loops: the window is [p − D, p + D], σ = D / 2."""
    output = torch.zeros(query.shape[0], value.shape[1], dtype=torch.float64)
    for i in range(query.shape[0]):
        p = float(center[i])
        window = [s for s in range(key.shape[0]) if p - radius <= s <= p + radius]
        scores = [float(query[i] @ key[s]) / math.sqrt(query.shape[1]) for s in window]
        total = sum(math.exp(score) for score in scores)
        for s, score in zip(window, scores, strict=True):
            align = math.exp(score) / total
            output[i] += align * math.exp(-((s - p) ** 2) / (2 * (radius / 2) ** 2)) * value[s]
    return output


def tensors() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    query, key, value = (torch.randn(n, w, dtype=torch.float64) for n, w in ((L, D), (S, D), (S, E)))
    return query, key, value, torch.tensor([0.0, 2.5, 4.25, 10.0, 17.0], dtype=torch.float64)


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_is_what_the_paper_says(backend: BackendName) -> None:
    query, key, value, center = tensors()
    local, window = LocalGaussian(center, deviation=1.5), CenteredWindow(center, radius=3)
    found = attend(query, key, value, normalizer=local, mask=window, backend=backend).output
    assert torch.allclose(found, attend_in_loops(query, key, value, center, 3), rtol=0, atol=1e-12)
    assert (found[-1] == 0).all()


def test_a_gaussian_in_the_score_is_something_else() -> None:
    """softmax(s + log g) sums to one again: on unit data it is off by about as much as the values are large."""
    query, key, value, center = tensors()
    local, window = LocalGaussian(center, deviation=1.5), CenteredWindow(center, radius=3)
    right = attend(query, key, value, normalizer=local, mask=window).output
    logarithm = -0.5 * ((torch.arange(S) - center[:, None]) / 1.5) ** 2
    wrong = attend(query, key, value, bias=Dense(logarithm), mask=window).output
    assert (right - wrong).abs().max() > 0.1
    weights = attend(query, key, value, normalizer=local, mask=window).weights.dense().sum(-1)
    assert (weights < 1 - 1e-3).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_center_is_trained_through_the_weights(backend: BackendName) -> None:
    """Against the difference quotient of the loops above."""
    query, key, value, center = tensors()
    center = center[:4].clone().requires_grad_()
    query = query[:4]
    mask = CenteredWindow(torch.full((4,), 5.0), radius=100)  # a window that does not move with the center
    output = attend(query, key, value, normalizer=LocalGaussian(center, 1.5), mask=mask, backend=backend).output
    (grad,) = torch.autograd.grad(output.sum(), center)

    def read(point: Tensor) -> Tensor:
        scores = torch.softmax(query @ key.T / math.sqrt(D), -1)
        return ((scores * (-((torch.arange(S) - point[:, None]) ** 2) / (2 * 1.5**2)).exp()) @ value).sum(-1)

    step = 1e-5
    slope = (read(center.detach() + step) - read(center.detach() - step)) / (2 * step)
    assert torch.allclose(grad, slope, rtol=1e-6, atol=1e-9)


def test_each_sequence_and_head_has_its_own_center() -> None:
    query, key, value = (torch.randn(2, 3, n, D, dtype=torch.float64) for n in (L, S, S))
    center = torch.rand(2, 3, L, dtype=torch.float64) * S
    together = attend(query, key, value, normalizer=LocalGaussian(center, 2.0)).output
    for b in range(2):
        for h in range(3):
            alone = attend(query[b, h], key[b, h], value[b, h], normalizer=LocalGaussian(center[b, h], 2.0)).output
            assert torch.allclose(together[b, h], alone, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((4,), "normalizer.center: got 4 centers, expected queries=5; fix: give one center for each query"),
        (
            (3, 5),
            "normalizer.center: got lead axes (3,), expected axes that broadcast to (2,); "
            "fix: give it size-1 axes where it is shared, for example lengths[:, None] for (batch, heads)",
        ),
    ],
)
def test_centers_that_do_not_fit_are_one_sentence(shape: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attend(
            torch.ones(2, L, D),
            torch.ones(2, S, D),
            torch.ones(2, S, E),
            normalizer=LocalGaussian(torch.zeros(shape), 1.0),
        )
