"""Scores to weights: against definitions, a second algorithm, and the entmax package where it works."""

import math
from collections.abc import Callable
from functools import partial

import entmax as package
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from regard.compute.kernels import native, simplex, simplex_rows, threshold

B, H, L, S = 2, 3, 5, 7
INF, NAN = float("inf"), float("nan")
ALPHAS = (1.0, 1.05, 1.3, 1.5, 1.7, 2.0, 2.5, 4.0)

FAMILY: dict[str, Callable[..., Tensor]] = {
    "softmax": simplex.softmax,
    "softmax_plus_one": simplex.softmax_plus_one,
    "sparsemax": simplex.sparsemax,
    "entmax15": simplex.entmax15,
    "entmax 1.3": lambda scores, allowed=None: simplex.entmax(scores, allowed, 1.3),
    "entmax 2.5": lambda scores, allowed=None: simplex.entmax(scores, allowed, 2.5),
}
ALL = FAMILY | {"sigmoid": simplex.sigmoid, "row_total": simplex.row_total}
every_member = pytest.mark.parametrize("name", FAMILY)
every_function = pytest.mark.parametrize("name", ALL)


def rows(*shape: int, dtype: torch.dtype = torch.float64, scale: float = 1.0) -> Tensor:
    return (torch.randn(*shape, dtype=torch.float64) * scale).to(dtype)


def normalize_by_bisection(scores: Tensor, alpha: float) -> Tensor:
    """Return the definition; its threshold is found by halving an interval 200 times in float64."""
    if alpha == 1:
        return torch.softmax(scores, -1)
    stretched = (alpha - 1) * scores
    high = stretched.amax(-1, keepdim=True)
    low = high - 1
    for _ in range(200):
        middle = (low + high) / 2
        total = (stretched - middle).clamp(min=0).pow(1 / (alpha - 1)).sum(-1, keepdim=True)
        low, high = torch.where(total > 1, middle, low), torch.where(total > 1, high, middle)
    return (stretched - low).clamp(min=0).pow(1 / (alpha - 1))


def sparsemax_by_sorting(scores: Tensor) -> Tensor:
    """Algorithm 1 of Martins & Astudillo 2016."""
    ordered = scores.sort(-1, descending=True).values
    count = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    excess = ordered.cumsum(-1) - 1
    support = (count * ordered > excess).sum(-1, keepdim=True)
    return (scores - excess.gather(-1, support - 1) / support).clamp(min=0)


# -- values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_entmax_is_its_definition(who: str, alpha: float, scale: float) -> None:
    scores = rows(H, L, 31, scale=scale)
    for given_alpha in (alpha, torch.tensor(alpha, dtype=torch.float64)):
        torch.testing.assert_close(
            simplex.entmax(scores, None, given_alpha), normalize_by_bisection(scores, alpha), rtol=1e-10, atol=1e-12
        )


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_the_named_members_are_their_definitions(who: str, scale: float) -> None:
    scores = rows(H, L, 31, scale=scale)
    zero = torch.zeros(H, L, 1, dtype=torch.float64)
    close = partial(torch.testing.assert_close, rtol=1e-10, atol=1e-12)
    close(simplex.softmax(scores), torch.softmax(scores, -1))
    close(simplex.softmax_plus_one(scores), torch.softmax(torch.cat([scores, zero], -1), -1)[..., :-1])
    close(simplex.sparsemax(scores), sparsemax_by_sorting(scores))
    close(simplex.entmax15(scores), normalize_by_bisection(scores, 1.5))


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_the_entmax_package_agrees_in_value_and_gradient(who: str, scale: float) -> None:
    ours = rows(L, 31, scale=scale).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    grad = rows(L, 31)
    pairs = [
        (simplex.sparsemax(ours), package.sparsemax(theirs, -1)),
        (simplex.entmax15(ours), package.entmax15(theirs, -1)),
        (simplex.entmax(ours, None, 1.7), package.entmax_bisect(theirs, 1.7, -1, n_iter=100)),
    ]
    for mine, other in pairs:
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-10)
        found, wanted = torch.autograd.grad(mine, ours, grad), torch.autograd.grad(other, theirs, grad)
        torch.testing.assert_close(found, wanted, rtol=1e-7, atol=1e-8)


def test_alpha_may_differ_by_head(who: str) -> None:
    scores, alpha = rows(B, H, L, S), torch.tensor([1.0, 1.4, 2.0], dtype=torch.float64)
    weights = simplex.entmax(scores, None, alpha[:, None, None])
    for head, own in enumerate(alpha.tolist()):
        torch.testing.assert_close(
            weights[:, head], normalize_by_bisection(scores[:, head], own), rtol=1e-10, atol=1e-12
        )


def test_entmax_leaves_softmax_along_its_derivative(who: str) -> None:
    """p(1 + δ) = p(1) + δ dp/dα + O(δ²), with dp/dα = -p (log² p - Σ p log² p) / 2: no jump at 1, no lost digit."""
    scores, step = rows(L, S), 1e-5
    start = torch.softmax(scores, -1)
    square = start.log().square()
    slope = -start * (square - (start * square).sum(-1, keepdim=True)) / 2
    change = simplex.entmax(scores, None, torch.tensor(1 + step, dtype=torch.float64)) - start
    # The second derivative is a polynomial of degree 4 in log p, which stays above -10 here.
    assert (change - step * slope).abs().max() < step**2 * 1e4
    assert change.abs().max() > step * 1e-3


@every_member
def test_rows_where_newton_could_crawl(who: str, name: str) -> None:
    """Scores that leave the support one by one: gaps that shrink by factors, over many sizes."""
    gaps = torch.tensor([0.5, 0.9, 0.99, 1 / 3], dtype=torch.float64)
    scores = -(gaps[:, None] ** torch.arange(1, 102, dtype=torch.float64))
    alpha = {"sparsemax": 2.0, "entmax15": 1.5, "entmax 1.3": 1.3, "entmax 2.5": 2.5}.get(name, 1.0)
    wanted = normalize_by_bisection(scores, alpha)
    if name == "softmax_plus_one":
        wanted = torch.softmax(torch.nn.functional.pad(scores, (0, 1)), -1)[..., :-1]
    torch.testing.assert_close(FAMILY[name](scores), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("keys", [1, 2, 3, 4, 8, 61])
@every_member
def test_equal_scores_share_equally(who: str, name: str, keys: int) -> None:
    weights = FAMILY[name](torch.full((L, keys), -3.0, dtype=torch.float64))
    share = 1 / (keys + (math.exp(3.0) if name == "softmax_plus_one" else 0))
    torch.testing.assert_close(weights, torch.full_like(weights, share), rtol=1e-14, atol=0)


@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.3, 1.5, 2.0])
def test_newton_takes_few_steps(monkeypatch: pytest.MonkeyPatch, alpha: float, scale: float) -> None:
    """Counted where it can be: in torch, for the row that takes most; the last two are both ends of the bracket."""
    calls, power = [], threshold._raise_entmax_power
    monkeypatch.setattr(simplex_rows, "find_library", lambda *_: None)
    monkeypatch.setattr(threshold, "_raise_entmax_power", lambda *arguments: calls.append(1) or power(*arguments))
    simplex.entmax(rows(1009, 101, scale=scale), None, torch.tensor(alpha, dtype=torch.float64))
    assert len(calls) <= 14


@every_member
def test_float32_is_as_exact_as_its_rounding(who: str, name: str) -> None:
    scores = rows(H, L, 101, dtype=torch.float32, scale=3.0)
    exact = FAMILY[name](scores.double())
    # p = base^(1/(α-1)): an error of a few units in base (at most 1) becomes 1/(α-1) times as many in p for α < 2;
    # above 2 the slope p^(2-α) of small weights magnifies it.
    magnified = exact.clamp(min=1e-3) ** -0.5 if name == "entmax 2.5" else 1.0
    assert ((FAMILY[name](scores) - exact).abs() <= 16 * torch.finfo(torch.float32).eps * magnified).all()


@pytest.mark.parametrize("excess", [2.0**-10, 2.0**-20])
def test_alpha_close_to_1_loses_no_digits(who: str, excess: float) -> None:
    """(1 + a x)^(1/a) without care: a rounding error of 1 + a x is divided by a."""
    scores, alpha = rows(H, L, 101, dtype=torch.float32, scale=3.0), torch.tensor(1 + excess)
    exact = normalize_by_bisection(scores.double(), 1 + excess) if excess > 1e-4 else torch.softmax(scores.double(), -1)
    # Two terms: float32, and for the smaller excess the distance from softmax itself, below a log²(p) p / 2.
    allowance = 32 * torch.finfo(torch.float32).eps + (0.0 if excess > 1e-4 else excess)
    assert (simplex.entmax(scores, None, alpha) - exact).abs().max() <= allowance


@every_member
def test_large_scores_are_no_trouble(who: str, name: str) -> None:
    scores = torch.tensor([[1e30, 0.0, -1e30], [-1e30, -1e30, -1e30]], dtype=torch.float32)
    weights = FAMILY[name](scores)
    third = 0.0 if name == "softmax_plus_one" else 1 / 3
    torch.testing.assert_close(weights, torch.tensor([[1.0, 0.0, 0.0], [third] * 3]))


@every_function
def test_one_key_and_no_key(who: str, name: str) -> None:
    one = ALL[name](torch.full((L, 1), 2.0))
    expected = {"softmax_plus_one": torch.tensor(2.0).sigmoid().item(), "sigmoid": torch.tensor(2.0).sigmoid().item()}
    torch.testing.assert_close(one, torch.full((L, 1), expected.get(name, 1.0)))
    assert ALL[name](torch.zeros(L, 0)).shape == (L, 0)
    assert ALL[name](torch.zeros(0, S), torch.ones(0, S, dtype=torch.bool)).shape == (0, S)


# -- masks --------------------------------------------------------------------------------------------


@every_function
@pytest.mark.parametrize("shape", [(S,), (L, S), (L, 1), (B, 1, 1, S), (B, H, L, S), (1, H, 1, S), (13, 1, 1, 1, S)])
def test_a_mask_broadcasts_and_masked_keys_might_as_well_not_be_there(
    who: str, name: str, shape: tuple[int, ...]
) -> None:
    scores, allowed = rows(B, H, L, S).abs(), torch.rand(shape) > 0.4
    weights = ALL[name](scores, allowed)
    whole = torch.broadcast_shapes(shape, scores.shape)
    assert weights.shape == whole
    table = [tensor.expand(whole).reshape(-1, S)[::7] for tensor in (scores, allowed, weights)]
    for row, mask, found in zip(*table, strict=True):
        torch.testing.assert_close(found[mask], ALL[name](row[mask]), rtol=1e-10, atol=1e-12)
        assert (found[~mask] == 0).all()


@every_function
@pytest.mark.parametrize("planted", [NAN, INF, -INF])
def test_what_is_masked_is_never_read(who: str, name: str, planted: float) -> None:
    allowed = torch.rand(B, L, S) > 0.4
    allowed[0, 0] = False
    clean = rows(B, L, S).abs().requires_grad_()
    dirty = torch.where(allowed, clean.detach(), planted).requires_grad_()
    grad = rows(B, L, S)
    weights = ALL[name](clean, allowed)
    (wanted,) = torch.autograd.grad(weights, clean, grad)
    found = ALL[name](dirty, allowed)
    # The gradient that arrives at a masked weight is poisoned too, as that of a NaN value would be.
    (got,) = torch.autograd.grad(found, dirty, torch.where(allowed, grad, planted))
    assert torch.equal(found, weights)
    assert torch.equal(got, wanted)
    assert (got[~allowed] == 0).all()


@every_function
def test_an_empty_row_has_no_weight_and_no_gradient(who: str, name: str) -> None:
    allowed = torch.ones(L, S, dtype=torch.bool)
    allowed[1] = False
    scores = rows(L, S).abs()
    scores[3] = 0.0 if name == "row_total" else -INF
    scores.requires_grad_()
    weights = ALL[name](scores, allowed)
    weights.backward(rows(L, S))
    assert scores.grad is not None
    for row in (1, 3):
        assert (weights[row] == 0).all()
        assert name == "row_total" or (scores.grad[row] == 0).all()
    assert (weights[[0, 2, 4]] > 0).any(-1).all()
    assert torch.isfinite(scores.grad).all()


@every_member
def test_minus_infinity_is_the_same_as_not_allowed(who: str, name: str) -> None:
    scores, allowed = rows(L, S), torch.rand(L, S) > 0.3
    assert torch.equal(FAMILY[name](scores.masked_fill(~allowed, -INF)), FAMILY[name](scores, allowed))


@every_member
@pytest.mark.parametrize("strange", [NAN, INF])
def test_what_is_allowed_and_not_a_number_shows(who: str, name: str, strange: float) -> None:
    scores, allowed = rows(L, S), torch.ones(S, dtype=torch.bool)
    scores[2, 3], allowed[5] = strange, False
    weights = FAMILY[name](scores, allowed)
    assert weights[2, 3].isnan()
    assert (weights[:, 5] == 0).all()
    assert torch.isfinite(weights[[0, 1, 3, 4]]).all()


# -- gradients ----------------------------------------------------------------------------------------


@every_function
def test_gradients_are_those_of_the_function(who: str, name: str) -> None:
    allowed = torch.rand(L, S) > 0.3
    allowed[2] = False
    run = partial(ALL[name], allowed=allowed)
    scores = rows(L, S).abs().requires_grad_()
    assert torch.autograd.gradcheck(run, scores)
    assert torch.autograd.gradgradcheck(run, scores, fast_mode=True)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_gradient_by_alpha_is_that_of_the_function(who: str, alpha: float) -> None:
    """At 1 too, where the published formula is 0/0 and the finite differences step to both sides."""
    allowed = torch.rand(H, 2, S) > 0.3
    scores = rows(H, 2, S, scale=0.5).requires_grad_()
    each = torch.full((H, 1, 1), alpha, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s, a: simplex.entmax(s, allowed, a), (scores, each))


def test_only_the_weights_are_kept_for_the_backward(who: str) -> None:
    kept: list[Tensor] = []
    scores = rows(B, H, L, S).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        weights = simplex.entmax15(scores, torch.ones(L, S, dtype=torch.bool))
    assert [tensor.data_ptr() for tensor in kept] == [weights.data_ptr()]


# -- dtypes, sizes, transforms ------------------------------------------------------------------------


@every_function
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(who: str, name: str, dtype: torch.dtype) -> None:
    scores = rows(H, L, 101, dtype=dtype).abs()
    weights, exact = ALL[name](scores), ALL[name](scores.double())
    assert weights.dtype == dtype
    unit = torch.finfo(dtype)
    # Half a unit in the last place, or of the smallest number, and what float32 rounded before.
    allowance = exact * unit.eps / 2 * 1.001 + unit.tiny * unit.eps + 1e-6
    assert ((weights.double() - exact).abs() <= allowance).all()


@every_member
def test_half_precision_gradients_are_those_of_the_rounded_weights(who: str, name: str) -> None:
    scores = rows(L, S, dtype=torch.bfloat16).requires_grad_()
    wide = scores.detach().double().requires_grad_()
    grad = rows(L, S, dtype=torch.bfloat16)
    FAMILY[name](scores).backward(grad)
    FAMILY[name](wide).backward(grad.double())
    assert scores.grad is not None
    assert wide.grad is not None
    assert scores.grad.dtype == torch.bfloat16
    # q = p^(2-α) with |2-α| ≤ 1 has at most p's relative error; two products and a mean of it, times the largest g.
    bound = 4 * torch.finfo(torch.bfloat16).eps * grad.abs().max()
    assert (scores.grad - wide.grad).abs().max() <= bound


@every_member
def test_native_rows_are_torchs_rows(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if native.load_library() is None:
        pytest.skip("no compiler here")
    scores, allowed = rows(H, L, 1009, scale=2.0).requires_grad_(), torch.rand(L, 1009) > 0.2
    grad = rows(H, L, 1009)
    fast = FAMILY[name](scores, allowed)
    (fast_grad,) = torch.autograd.grad(fast, scores, grad)
    monkeypatch.setattr(simplex_rows, "find_library", lambda *_: None)
    slow = FAMILY[name](scores, allowed)
    (slow_grad,) = torch.autograd.grad(slow, scores, grad)
    torch.testing.assert_close(fast, slow, rtol=1e-9, atol=1e-13)
    torch.testing.assert_close(fast_grad, slow_grad, rtol=1e-9, atol=1e-11)


@every_member
def test_blocks_of_rows_are_the_whole(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(simplex_rows, "find_library", lambda *_: None)
    scores, allowed = rows(B, H, L, S).requires_grad_(), torch.rand(B, 1, 1, S) > 0.3
    alpha = torch.tensor([1.0, 1.4, 2.0], dtype=torch.float64, requires_grad=True)
    grad = rows(B, H, L, S)

    def run() -> list[Tensor]:
        if name == "entmax 1.3":
            weights = simplex.entmax(scores, allowed, alpha[:, None, None])
            return [weights, *torch.autograd.grad(weights, (scores, alpha), grad)]
        weights = FAMILY[name](scores, allowed)
        return [weights, *torch.autograd.grad(weights, scores, grad)]

    whole = run()
    monkeypatch.setattr(simplex_rows, "BLOCK", 4 * S)  # four rows at a time: thirty are not a multiple
    for found, wanted in zip(run(), whole, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-14)


def test_threads_share_the_rows_without_losing_one() -> None:
    scores, before = rows(1009, 211, dtype=torch.float32), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = simplex.sparsemax(scores)
        torch.set_num_threads(3)
        assert torch.equal(simplex.sparsemax(scores), alone)
    finally:
        torch.set_num_threads(before)


def test_strides_do_not_matter(who: str) -> None:
    scores, allowed = rows(S, L, H), torch.rand(S, L, H) > 0.3
    found = simplex.entmax15(scores.transpose(0, 2), allowed.transpose(0, 2))
    straight = simplex.entmax15(scores.transpose(0, 2).contiguous(), allowed.transpose(0, 2).contiguous())
    torch.testing.assert_close(found, straight, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax 1.3"])
def test_what_is_exported_needs_nothing_of_ours(name: str) -> None:
    class Module(torch.nn.Module):
        def forward(self, scores: Tensor, allowed: Tensor) -> Tensor:
            return ALL[name](scores, allowed)

    scores, allowed = rows(H, L, S, dtype=torch.float32), torch.rand(L, S) > 0.3
    program = torch.export.export(Module(), (scores, allowed), strict=False)
    assert not [node for node in program.graph.nodes if "regard" in str(node.target)]
    torch.testing.assert_close(program.module()(scores, allowed), ALL[name](scores, allowed))


@every_member
def test_per_sample_gradients_work(name: str) -> None:
    scores, grad = rows(B, L, S), rows(B, L, S)

    def loss(one: Tensor, weight: Tensor) -> Tensor:
        return (FAMILY[name](one) * weight).sum()

    found = torch.func.vmap(torch.func.grad(loss))(scores, grad)
    scores.requires_grad_()
    (wanted,) = torch.autograd.grad(FAMILY[name](scores), scores, grad)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)


def test_a_gradient_by_something_else_may_pass_by() -> None:
    """Within torch.func a function that does not know of it raises, even on tensors that are not its business."""
    scores, factor = rows(L, S), rows(L, S)
    found = torch.func.grad(lambda other: (simplex.sparsemax(scores) * other).sum())(factor)
    torch.testing.assert_close(found, simplex.sparsemax(scores), rtol=1e-12, atol=1e-14)


# -- properties ---------------------------------------------------------------------------------------

numbers = st.floats(-50, 50, width=32)


@given(st.lists(st.tuples(numbers, st.booleans()), min_size=1, max_size=23), st.sampled_from(sorted(FAMILY)))
def test_weights_are_a_distribution_or_an_empty_row(pairs: list[tuple[float, bool]], name: str) -> None:
    scores = torch.tensor([number for number, _ in pairs], dtype=torch.float64)
    allowed = torch.tensor([flag for _, flag in pairs])
    weights = FAMILY[name](scores, allowed)
    assert (weights >= 0).all()
    total = weights.sum().item()
    if name == "softmax_plus_one":
        assert total <= 1 + 1e-12
    else:
        assert total == pytest.approx(1.0 if allowed.any() else 0.0, abs=1e-9)
    kept, shares = scores[allowed], weights[allowed]
    assert (shares[kept.argsort()].diff() >= 0).all(), "a higher score never weighs less"


@given(st.lists(numbers, min_size=2, max_size=23), numbers, st.randoms(use_true_random=False))
def test_a_shift_changes_nothing_and_order_does_not_matter(values: list[float], shift: float, random: object) -> None:
    scores = torch.tensor(values, dtype=torch.float64)
    order = torch.randperm(len(values))
    for name, function in FAMILY.items():
        weights = function(scores)
        torch.testing.assert_close(function(scores[order]), weights[order], rtol=1e-8, atol=1e-10)
        if name != "softmax_plus_one":
            torch.testing.assert_close(function(scores + shift), weights, rtol=1e-8, atol=1e-10)


# -- the two that stand outside the family ------------------------------------------------------------


def test_sigmoid_and_row_total_are_their_definitions() -> None:
    scores = rows(L, S).abs()
    torch.testing.assert_close(simplex.sigmoid(scores), 1 / (1 + (-scores).exp()))
    torch.testing.assert_close(simplex.row_total(scores).sum(-1), torch.ones(L, dtype=torch.float64))
    torch.testing.assert_close(simplex.row_total(scores) * scores.sum(-1, keepdim=True), scores)


def test_scores_that_add_up_to_zero_weigh_nothing() -> None:
    assert simplex.row_total(torch.tensor([[1.0, -1.0, 0.0]])).tolist() == [[0.0, 0.0, 0.0]]
