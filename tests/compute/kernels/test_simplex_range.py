"""Sparsemax and entmax over the whole of their range: α, lengths, offsets, dtypes. Oracles: halving, closed forms."""

import math

import pytest
import torch
from torch import Tensor

from regard.compute.kernels import simplex

B, H, L, S = 2, 3, 5, 7
INF = float("inf")
ALPHAS = (1.0, 1 + 2.0**-20, 1.1, 1.5, 1.7, 2.0, 2.01, 3.0, 4.0, 20.0, 100.0)
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
every_alpha = pytest.mark.parametrize("alpha", ALPHAS)


def row(kind: str, keys: int) -> Tensor:
    scores = torch.randn(keys, dtype=torch.float64) * {"flat": 0.0, "close": 1e-3, "peaked": 1e-3}.get(kind, 1.0)
    scores[keys // 2] += 20.0 * (kind == "peaked")
    return scores + 1000.0 * (kind == "offset")


def normalize_by_halving(scores: Tensor, alpha: Tensor) -> Tensor:
    """Return the definition in float64: −log of the largest weight is found by halving [0, log n], without Newton."""
    scores, excess = scores.double(), alpha.double() - 1
    shifted = scores - scores.amax(-1, keepdim=True)

    def weights(place: Tensor) -> Tensor:
        change = (excess * (excess * place).clamp(max=600).exp() * shifted).clamp(min=-1)
        power = torch.where(excess == 0, shifted, change.log1p() / torch.where(excess == 0, 1.0, excess))
        return (power - place).exp()

    low = torch.zeros(*torch.broadcast_shapes((*scores.shape[:-1], 1), excess.shape), dtype=torch.float64)
    high = low + math.log(scores.shape[-1])
    for _ in range(80):
        middle = (low + high) / 2
        more = weights(middle).sum(-1, keepdim=True) > 1
        low, high = torch.where(more, middle, low), torch.where(more, high, middle)
    return weights(high) / weights(high).sum(-1, keepdim=True)


def gradients(weights: Tensor, grad: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients as Peters et al. 2019, prop. 2, and Correia et al. 2019, prop. 1, print them, for α > 1."""
    live, excess = weights > 0, alpha.double() - 1
    slope = torch.where(live, torch.where(live, weights, 1.0) ** (1 - excess), 0.0)
    share = slope / slope.sum(-1, keepdim=True)
    by_scores = slope * (grad - (share * grad).sum(-1, keepdim=True))
    entropy = torch.special.xlogy(weights, weights)
    change = (weights - share) / excess**2 - (entropy - share * entropy.sum(-1, keepdim=True)) / excess
    return by_scores, (grad * change).sum(-1, keepdim=True)


def compute_half_units(weights: Tensor) -> Tensor:
    """Return how far rounding to a dtype may move each weight."""
    unit = torch.finfo(weights.dtype)
    return (weights.double() * unit.eps / 2).clamp(min=unit.tiny * unit.eps / 2)


# -- sums ---------------------------------------------------------------------------------------------


@every_alpha
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_sum_to_one(who: str, alpha: float, dtype: torch.dtype) -> None:
    for keys in (1, 2, 7, 1009, 30_011):
        for kind in ("flat", "close", "random", "peaked", "offset"):
            weights = simplex.entmax(row(kind, keys).to(dtype)[None], None, alpha)
            assert weights.dtype == dtype
            total = weights.double().sum().item()
            work = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
            allowance = 4 * work + (compute_half_units(weights).sum().item() if dtype.itemsize == 2 else 0.0)
            assert abs(total - 1) <= allowance, (keys, kind)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 3.0])
def test_a_million_keys_sum_to_one(who: str, alpha: float) -> None:
    for kind in ("flat", "peaked", "peaked", "peaked"):  # other numbers each time
        weights = simplex.entmax(row(kind, 1_000_000).float(), None, alpha)
        assert abs(weights.double().sum().item() - 1) <= 2 * torch.finfo(torch.float32).eps, kind


@every_alpha
@pytest.mark.parametrize("keys", [1000, 100_000])
def test_equal_scores_share_equally_and_have_a_gradient(who: str, alpha: float, keys: int) -> None:
    scores = torch.full((1, keys), 3.0, dtype=torch.float32).requires_grad_()
    weights = simplex.entmax(scores, None, alpha)
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / keys), rtol=4e-7, atol=0)
    grad = torch.zeros_like(scores)
    grad[0, ::2] = 1.0
    (found,) = torch.autograd.grad(weights, scores, grad)
    slope = (alpha - 2) * math.log(keys)  # beyond 88 the true gradient is no float32
    wanted = torch.full((), slope, dtype=torch.float64).exp().float() * (grad - 0.5)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=0)


@pytest.mark.parametrize("alpha", [20.0, 100.0])
def test_a_gradient_beyond_all_numbers_has_its_sign_and_a_constant_one_is_none(who: str, alpha: float) -> None:
    scores = torch.zeros(1, 1000).requires_grad_()
    weights = simplex.entmax(scores, None, alpha)
    (nothing,) = torch.autograd.grad(weights, scores, torch.full_like(weights, 0.3), retain_graph=True)
    assert (nothing == 0).all()
    (found,) = torch.autograd.grad(weights, scores, torch.linspace(-1, 1, 1000)[None])
    assert torch.equal(found.sign(), torch.linspace(-1, 1, 1000)[None].sign())


# -- values and gradients -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("alpha", [1.05, 1.3, 1.5, 1.9, 2.0, 2.2, 3.0])
def test_weights_and_gradients_are_those_found_by_halving(who: str, alpha: float, dtype: torch.dtype) -> None:
    """One α for each head, learned; rows from flat to peaked."""
    heads = torch.tensor([alpha, 1.2, alpha + 0.4], dtype=dtype).requires_grad_()
    kinds = ("flat", "close", "random", "peaked", "offset")
    scores = torch.stack([torch.stack([row(kind, 101) for _ in range(H)]) for kind in kinds]).to(dtype).requires_grad_()
    grad = torch.randn(scores.shape, dtype=dtype)
    found = simplex.entmax(scores, None, heads[:, None])
    by_scores, by_alpha = torch.autograd.grad(found, (scores, heads), grad)
    wanted = normalize_by_halving(scores.detach(), heads.detach()[:, None])
    wanted_scores, wanted_alpha = gradients(wanted, grad.double(), heads.detach()[:, None])
    unit = torch.finfo(dtype).eps
    # Where a weight is close to the edge of the support, its rounding errors are those of its score times the slope.
    magnified = torch.where(wanted > 0, wanted ** (2 - heads.detach()[:, None].double()), 0.0).clamp(min=1)
    assert ((found.double() - wanted).abs() <= 64 * unit * (wanted + 1e-2) * magnified).all()
    scale = wanted_scores.abs().amax(-1, keepdim=True) + 1
    assert ((by_scores.double() - wanted_scores).abs() <= 1e4 * unit * scale).all()
    torch.testing.assert_close(by_alpha.double(), wanted_alpha.sum((0, 2)), rtol=1e5 * unit, atol=1e5 * unit)


@pytest.mark.parametrize("gap", [1e-12, 1e-6, 1e-3, 9e-3, 0.04, 0.3])
@pytest.mark.parametrize("alpha", [1.2, 3.0, 5.0, 20.0, 100.0])
def test_two_keys_are_their_equation(who: str, alpha: float, gap: float) -> None:
    """$p^a - (1 - p)^a = a d$: for α = 100 the second key weighs 2 % with $b + a u$ of 1e-161."""
    a, low, high = alpha - 1, 0.0, 0.5
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 - middle) ** a - middle**a > a * gap else (low, middle)
    small, large = high if high > 1e-60 else 0.0, 1 - high
    scores = torch.tensor([[0.0, -gap]], dtype=torch.float64, requires_grad=True)
    alphas = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    weights = simplex.entmax(scores, None, alphas)
    torch.testing.assert_close(weights[0], torch.tensor([large, small], dtype=torch.float64), rtol=1e-9, atol=1e-12)
    by_scores, by_alpha = torch.autograd.grad(weights, (scores, alphas), torch.tensor([[3.0, 5.0]]).double())
    slope = 1 / (large ** (a - 1) + small ** (a - 1)) if small else 0.0
    change = slope * (gap - large**a * math.log(large) + small**a * math.log(small)) / a if small else 0.0
    torch.testing.assert_close(
        by_scores[0], torch.tensor([-2 * slope, 2 * slope], dtype=torch.float64), rtol=1e-8, atol=1e-10
    )
    torch.testing.assert_close(by_alpha.item(), -2 * change, rtol=1e-7, atol=1e-10)


@every_alpha
def test_scores_that_do_not_count_might_as_well_not_be_there(who: str, alpha: float) -> None:
    scores, allowed = torch.randn(L, 53, dtype=torch.float64) * 0.02, torch.rand(L, 53) > 0.4
    allowed[3] = False
    scores[:, ::9] = -INF
    weights = simplex.entmax(scores, allowed, alpha)
    for own, mask, found in zip(scores, allowed & (scores > -INF), weights, strict=True):
        assert (found[~mask] == 0).all()
        torch.testing.assert_close(found[mask], simplex.entmax(own[mask], None, alpha), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_above_2_keeps_the_gradient_of_float32(who: str, dtype: torch.dtype) -> None:
    """The slope is p^-18: from weights rounded to eight bits it would be off by a tenth."""
    scores = (torch.randn(L, 31) * 0.01).to(dtype)
    grad = torch.randn(L, 31).to(dtype)
    half, whole = scores.clone().requires_grad_(), scores.float().requires_grad_()
    (found,) = torch.autograd.grad(simplex.entmax(half, None, 20.0), half, grad)
    (wanted,) = torch.autograd.grad(simplex.entmax(whole, None, 20.0), whole, grad.float())
    torch.testing.assert_close(found, wanted.to(dtype))


@pytest.mark.parametrize("alpha", [1.0, 1.3, 2.0, 2.5, 4.0])
def test_second_derivatives_are_those_of_the_function(who: str, alpha: float) -> None:
    scores = (torch.randn(2, 4, dtype=torch.float64) * 0.2).requires_grad_()
    alphas = torch.tensor([[alpha + 0.01], [alpha + 0.3]], dtype=torch.float64, requires_grad=True)
    grad = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda s, a: simplex.entmax(s, None, a), (scores, alphas), grad)


@every_alpha
def test_torch_func_sees_the_same_function(alpha: float) -> None:
    scores, grad = torch.randn(B, L, S, dtype=torch.float64) * 0.3, torch.randn(B, L, S, dtype=torch.float64)

    def loss(scores: Tensor, grad: Tensor) -> Tensor:
        return (simplex.entmax(scores, None, alpha) * grad).sum()

    own = scores.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(loss(own, grad), own)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(loss))(scores, grad), wanted)
    jacobian = torch.func.jacrev(lambda one: simplex.entmax(one, None, alpha))(scores[0, 0])
    torch.testing.assert_close(grad[0, 0] @ jacobian, wanted[0, 0])
