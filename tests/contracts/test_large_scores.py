"""Scores of any size and rows of any kind: what is found by a shorter way has the digits of the definition."""

import math

import pytest
import torch

from regard import Causal, Dot, LocalGaussian, Monotonic, Window, attend
from regard.algebra.masks import Mask
from regard.errors import PlanError

B, H, L, S, D, E = 2, 3, 7, 11, 5, 4
SCALES = [1.0, 30.0, 1e3, 1e5]


def compute_softmax(query: torch.Tensor, key: torch.Tensor, mask: Mask) -> torch.Tensor:
    """Return the softmax of a scaled dot product in float64, by its formula."""
    scores = query.double() @ key.double().mT / math.sqrt(query.shape[-1])
    allowed = mask.table(query.shape[-2], key.shape[-2])
    return torch.softmax(scores.masked_fill(~allowed, -math.inf), -1)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("backend", ["auto", "local"])
def test_a_softmax_times_a_gaussian_has_the_digits_of_the_definition(
    backend: str, dtype: torch.dtype, scale: float
) -> None:
    query, key, value = (torch.randn(B, H, n, w, dtype=dtype) for n, w in ((L, D), (S, D), (S, E)))
    normalizer, mask = LocalGaussian(torch.linspace(0, S - 1, L), 3.0), Window(S, S)
    if backend == "local" and scale > 1:  # by name it is computed so or not at all
        with pytest.raises(PlanError, match="digits"):
            attend(query, key * scale, value, normalizer=normalizer, mask=mask, backend="local")
        return
    found = attend(query, key * scale, value, normalizer=normalizer, mask=mask, backend=backend)
    centers = torch.linspace(0, S - 1, L).double()[:, None]
    fade = torch.exp(-((torch.arange(S) - centers) ** 2) / 18)
    true = (compute_softmax(query, key * scale, mask) * fade) @ value.double()
    own = attend(query, key * scale, value, normalizer=normalizer, mask=mask, backend="eager").output
    # Scores are rounded, so that the definition has an error of its own; a fused kernel may add 20 roundings.
    allowed = 2 * float((own.double() - true).abs().max()) + 22 * torch.finfo(dtype).eps * float(true.abs().max())
    assert float((found.output.double() - true).abs().max()) <= allowed
    assert scale < 30 or found.plan.backend == "stream"


def test_a_key_of_1e10_is_no_nan_in_the_gradient_of_others() -> None:
    query, key, value = (torch.randn(L, 3, requires_grad=True) for _ in range(3))
    with torch.no_grad():
        key[-1] = 1e10
    output = attend(query, key, value, normalizer=LocalGaussian(torch.arange(float(L)), 2.0), mask=Causal()).output
    slopes = torch.autograd.grad(output[:-1].sum(), (query, key, value))
    assert all(bool(slope.isfinite().all()) for slope in slopes)
    assert bool(output.isfinite().all())


@pytest.mark.parametrize("scale", SCALES)
def test_a_tile_has_the_digits_of_the_definition(scale: float) -> None:
    query, key, value = (torch.randn(B, H, n, w) for n, w in ((L, D), (S, D), (S, E)))
    weights = attend(query, key * scale, value, mask=Causal()).weights
    true = compute_softmax(query, key * scale, Causal())
    error = float((weights.tile(slice(2, 6), slice(1, 9)) - true[..., 2:6, 1:9]).abs().max())
    own = float((weights.dense() - true).abs().max())
    assert error <= 2 * own + 22 * torch.finfo(torch.float32).eps


def test_a_row_that_follows_from_a_broken_one_is_broken() -> None:
    query, key, value = (torch.randn(L, D) for _ in range(3))
    key[3], allowed = float("nan"), torch.ones(L, L, dtype=torch.bool)
    allowed[:, 3] = torch.arange(L) == 2
    found = attend(query, key, value, mask=Mask.keep(allowed), normalizer=Monotonic())
    for table in (found.output, found.weights.dense()):
        assert table.isnan().all(-1).tolist() == [False, False, *[True] * (L - 2)]


def test_heads_of_a_group_have_factors_of_their_own() -> None:
    query, key, value = torch.randn(B, 4, L, D), torch.randn(B, 2, S, D), torch.randn(B, 2, S, E)
    score = Dot() * torch.tensor([1.0, 2.0, 3.0, 4.0])
    found = attend(query, key, value, score=score)
    true = attend(query, *(tensor.repeat_interleave(2, 1) for tensor in (key, value)), score=score)
    torch.testing.assert_close(found.output, true.output)
