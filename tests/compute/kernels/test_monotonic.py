"""Monotonic alignment against the literal recursion, and against all the ways in which the queries may stop."""

from itertools import product

import pytest
import torch
from torch import Tensor

from regard.compute.kernels import monotonic

B, H, L, S = 2, 3, 5, 7
INF, NAN = float("inf"), float("nan")


def scores_of(*shape: int, scale: float = 1.0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64) * scale


def align_by_recursion(scores: Tensor, allowed: Tensor | None = None, previous: Tensor | None = None) -> Tensor:
    """Eq. 8-9 of Raffel et al. 2017 as loops, one row of `scores` after the other."""
    chance = torch.sigmoid(scores)
    chance = chance if allowed is None else torch.where(allowed, chance, 0.0)
    queries, keys = scores.shape
    before = [1.0] + [0.0] * (keys - 1) if previous is None else previous.tolist()
    table = []
    for query in range(queries):
        row, arrived = [], 0.0
        for key in range(keys):
            arrived = arrived * (1 - chance[query, key - 1].item() if key else 0.0) + before[key]
            row.append(chance[query, key].item() * arrived)
        table.append(row)
        before = row
    return torch.tensor(table, dtype=torch.float64).reshape(queries, keys)


def align_by_enumeration(scores: Tensor) -> Tensor:
    """Return the sum over every sequence of stops, each with its probability; stop S means: ran off the end."""
    chance = torch.sigmoid(scores)
    queries, keys = scores.shape
    table = torch.zeros(queries, keys, dtype=torch.float64)
    for stops in product(range(keys + 1), repeat=queries):
        probability, start = 1.0, 0
        for query, stop in enumerate(stops):
            if stop < start:
                probability = 0.0
                break
            for key in range(start, stop):
                probability *= 1 - chance[query, key].item()
            probability *= chance[query, stop].item() if stop < keys else 1.0
            start = stop
        for query, stop in enumerate(stops):
            if stop < keys:
                table[query, stop] += probability
    return table


def mix_chunks(weights: Tensor, scores: Tensor, width: int) -> Tensor:
    """Soft attention within every chunk, key by key."""
    result = torch.zeros_like(weights)
    for end in range(weights.shape[-1]):
        chunk = slice(max(0, end - width + 1), end + 1)
        result[..., chunk] += weights[..., end, None] * torch.softmax(scores[..., chunk], -1)
    return result


# -- expected -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 1), (1, 3), (3, 3), (4, 3), (3, 5)])
def test_expected_weights_are_the_sum_over_all_alignments(who: str, queries: int, keys: int) -> None:
    scores = scores_of(queries, keys)
    torch.testing.assert_close(monotonic.align_expected(scores), align_by_enumeration(scores), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize("keys", [1, 2, 7, 8, 9, 101])
def test_expected_weights_are_the_recursion(who: str, keys: int, scale: float) -> None:
    scores, allowed = scores_of(B, L, keys, scale=scale), torch.rand(B, L, keys) > 0.3
    for mask in (None, allowed):
        found = monotonic.align_expected(scores, mask)
        for batch in range(B):
            wanted = align_by_recursion(scores[batch], None if mask is None else mask[batch])
            torch.testing.assert_close(found[batch], wanted, rtol=1e-10, atol=1e-12)


def test_far_along_a_row_float32_keeps_its_digits(who: str) -> None:
    """In log space the product of 1900 factors (1 - p) costs three digits here; by cumprod it is 0, and 0/0 is NaN."""
    scores, previous = (scores_of(3, 2003) + 2).float(), torch.zeros(2003)
    previous[1900] = 1.0
    found = monotonic.align_expected(scores, None, previous)
    wanted = align_by_recursion(scores.double(), previous=previous)
    assert (wanted > 1e-3).any(-1).all()
    # Three rows of 11 rounds that round three times each; nothing cancels, so the errors stay relative.
    assert ((found - wanted).abs() <= 99 * torch.finfo(torch.float32).eps * wanted + 1e-37).all()


@pytest.mark.parametrize("extreme", [200.0, 1e4, INF])
def test_certain_choices_give_neither_nan_nor_a_broken_gradient(who: str, extreme: float) -> None:
    """The fault of cumprod implementations: p = 1 divides by 0 (MoChA-pytorch#4)."""
    scores = (torch.randint(0, 2, (B, L, 31)) * 2.0 - 1) * extreme
    scores[..., ::5] = 0.3
    scores.requires_grad_()
    weights = monotonic.align_expected(scores)
    weights.backward(torch.randn_like(weights))
    assert scores.grad is not None
    assert torch.isfinite(weights).all()
    assert torch.isfinite(scores.grad).all()
    for batch in range(B):
        torch.testing.assert_close(
            weights[batch].detach().double(), align_by_recursion(scores[batch].detach().double()), rtol=1e-5, atol=1e-6
        )


def test_rows_sum_to_one_or_less(who: str) -> None:
    weights = monotonic.align_expected(scores_of(B, H, L, S), torch.rand(L, S) > 0.3)
    assert (weights >= 0).all()
    assert (weights.sum(-1) <= 1 + 1e-12).all()
    assert (weights.sum(-1).diff(dim=-1) <= 1e-12).all(), "what ran off the end does not come back"


def test_gradients_are_those_of_the_function(who: str) -> None:
    scores = scores_of(B, 3, 5).requires_grad_()
    previous = torch.softmax(scores_of(B, 5), -1).requires_grad_()
    allowed = torch.rand(B, 3, 5) > 0.3

    def run(scores: Tensor, previous: Tensor) -> Tensor:
        return monotonic.align_expected(scores, allowed, previous)

    assert torch.autograd.gradcheck(run, (scores, previous))
    assert torch.autograd.gradgradcheck(run, (scores, previous), fast_mode=True)


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("width", [None, 1, 3])
def test_second_derivatives_are_those_of_the_function(who: str, width: int | None, strided: bool) -> None:
    """Also where only the scores want one, and where the loop has to copy what it reads."""
    allowed = torch.rand(3, 5) > 0.3
    scores = scores_of(5, 3).T if strided else scores_of(3, 5)

    def run(scores: Tensor) -> Tensor:
        weights = monotonic.align_expected(scores, allowed)
        return weights if width is None else monotonic.attend_chunkwise(weights, scores, width, allowed)

    assert torch.autograd.gradgradcheck(run, scores.detach().requires_grad_())


def test_second_derivatives_go_through_previous_queries(who: str) -> None:
    """Step after step, where the walk before depends on the same scores."""

    def run(scores: Tensor) -> Tensor:
        first = monotonic.align_expected(scores[:1])
        return monotonic.align_expected(scores[1:], None, first[0])

    scores = scores_of(3, 4).requires_grad_()
    assert torch.autograd.gradgradcheck(run, scores)
    (slope,) = torch.autograd.grad(run(scores).square().sum(), scores, create_graph=True)
    (whole,) = torch.autograd.grad(monotonic.align_expected(scores)[1:].square().sum(), scores, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(slope.sum(), scores), torch.autograd.grad(whole.sum(), scores))


@pytest.mark.parametrize("form", [monotonic.align_expected, monotonic.align_hard])
def test_stepping_is_the_whole(who: str, form) -> None:
    scores, allowed = scores_of(B, H, L, S), torch.rand(B, 1, L, S) > 0.2
    whole = form(scores, allowed)
    previous = None
    for query in range(L):
        row = form(scores[..., query : query + 1, :], allowed[..., query : query + 1, :], previous)
        previous = row[..., 0, :]
        torch.testing.assert_close(previous, whole[..., query, :], rtol=1e-12, atol=1e-14)


def test_a_start_may_be_given_for_all_leading_axes_at_once(who: str) -> None:
    scores, previous = scores_of(B, H, L, S), torch.softmax(scores_of(S), -1)
    found = monotonic.align_expected(scores, None, previous)
    for batch, head in product(range(B), range(H)):
        wanted = align_by_recursion(scores[batch, head], previous=previous)
        torch.testing.assert_close(found[batch, head], wanted, rtol=1e-10, atol=1e-12)


# -- hard ---------------------------------------------------------------------------------------------


def test_hard_takes_the_first_likely_key_from_the_last_choice_on() -> None:
    scores, allowed = scores_of(B, H, L, S), torch.rand(L, S) > 0.3
    found = monotonic.align_hard(scores, allowed)
    for batch, head in product(range(B), range(H)):
        start: int | None = 0
        for query in range(L):
            likely = (scores[batch, head, query] >= 0) & allowed[query]
            start = None if start is None else next((key for key in range(start, S) if likely[key]), None)
            wanted = [float(key == start) for key in range(S)]
            assert found[batch, head, query].tolist() == wanted


def test_hard_is_expected_with_certain_choices(who: str) -> None:
    scores, allowed = scores_of(B, H, L, 31), torch.rand(L, 31) > 0.3
    certain = torch.where(scores >= 0, INF, -INF)
    assert torch.equal(monotonic.align_hard(scores, allowed), monotonic.align_expected(certain, allowed))
    assert (monotonic.align_hard(scores, allowed).sum(-1) == 1).any()


def test_even_odds_stop() -> None:
    assert monotonic.align_hard(torch.zeros(1, 3)).tolist() == [[1.0, 0.0, 0.0]]


# -- chunkwise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2, 3, 7, 50])
def test_chunkwise_is_soft_attention_within_each_chunk(width: int) -> None:
    weights, scores = monotonic.align_expected(scores_of(B, H, L, S)), scores_of(B, H, L, S, scale=3.0)
    found = monotonic.attend_chunkwise(weights, scores, width)
    torch.testing.assert_close(found, mix_chunks(weights, scores, width), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found.sum(-1), weights.sum(-1), rtol=1e-10, atol=1e-12)


def test_chunks_of_one_key_change_nothing() -> None:
    weights = monotonic.align_expected(scores_of(L, S))
    torch.testing.assert_close(monotonic.attend_chunkwise(weights, scores_of(L, S), 1), weights)


def test_chunkwise_gradients_are_those_of_the_function() -> None:
    weights = torch.softmax(scores_of(2, 7), -1).requires_grad_()
    scores, allowed = scores_of(2, 7).requires_grad_(), torch.rand(2, 7) > 0.3

    def run(weights: Tensor, scores: Tensor) -> Tensor:
        return monotonic.attend_chunkwise(weights, scores, 3, allowed)

    assert torch.autograd.gradcheck(run, (weights, scores))
    assert torch.autograd.gradgradcheck(run, (weights, scores), fast_mode=True)


def test_scores_far_apart_in_one_row_keep_their_chunks() -> None:
    """One maximum for the row would leave 0/0 in every chunk that is 100 below it in float32."""
    scores = torch.arange(31.0) * -50
    weights = torch.zeros(1, 31)
    weights[0, -1] = 1.0
    found = monotonic.attend_chunkwise(weights, scores[None], 2)
    torch.testing.assert_close(found[0, -2:], torch.softmax(scores[-2:], -1))


def test_memory_does_not_grow_with_the_width() -> None:
    sizes = []
    for width in (2, 16):
        kept: list[int] = []

        def keep(tensor: Tensor, kept: list[int] = kept) -> Tensor:
            kept.append(tensor.numel())
            return tensor

        weights, scores = (torch.rand(L, 31, requires_grad=True) for _ in range(2))
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            monotonic.attend_chunkwise(weights, scores, width)
        sizes.append(sum(kept))
    assert sizes[0] == sizes[1] == 3 * L * 31


# -- masks, sizes, dtypes -----------------------------------------------------------------------------


@pytest.mark.parametrize("planted", [NAN, INF, -INF])
def test_what_is_masked_is_never_read(who: str, planted: float) -> None:
    allowed = torch.rand(B, L, S) > 0.4
    clean, soft = scores_of(B, L, S).requires_grad_(), scores_of(B, L, S).requires_grad_()
    dirty, dirty_soft = (torch.where(allowed, one.detach(), planted).requires_grad_() for one in (clean, soft))
    grad = torch.randn(B, L, S, dtype=torch.float64)
    poisoned = torch.where(allowed, grad, planted)
    wanted = monotonic.align_expected(clean, allowed)
    found = monotonic.align_expected(dirty, allowed)
    assert torch.equal(found, wanted)
    assert torch.equal(*(torch.autograd.grad(*each)[0] for each in [(wanted, clean, grad), (found, dirty, poisoned)]))
    start = wanted.detach().requires_grad_()
    wanted = monotonic.attend_chunkwise(start, soft, 3, allowed)
    found = monotonic.attend_chunkwise(start, dirty_soft, 3, allowed)
    assert torch.equal(found, wanted)
    for one, other in zip(
        torch.autograd.grad(wanted, (start, soft), grad),
        torch.autograd.grad(found, (start, dirty_soft), poisoned),
        strict=True,
    ):
        assert torch.equal(one, other)
    assert torch.equal(monotonic.align_hard(dirty, allowed), monotonic.align_hard(clean, allowed))


def test_an_empty_row_attends_to_nothing_and_so_does_what_follows(who: str) -> None:
    allowed = torch.ones(L, S, dtype=torch.bool)
    allowed[2] = False
    scores = scores_of(L, S).requires_grad_()
    weights = monotonic.align_expected(scores, allowed)
    weights.sum().backward()
    assert (weights[:2] > 0).all()
    assert (weights[2:] == 0).all()
    assert scores.grad is not None
    assert (scores.grad[2:] == 0).all()
    assert (monotonic.align_hard(scores.detach(), allowed)[2:] == 0).all()
    assert (monotonic.attend_chunkwise(weights.detach(), scores.detach(), 3, allowed)[2:] == 0).all()


@pytest.mark.parametrize("shape", [(0, S), (L, 0), (0, 0)])
def test_no_query_and_no_key(who: str, shape: tuple[int, int]) -> None:
    scores = torch.zeros(B, *shape)
    for found in (
        monotonic.align_expected(scores),
        monotonic.align_hard(scores),
        monotonic.attend_chunkwise(scores, scores, 2),
    ):
        assert found.shape == (B, *shape)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(who: str, dtype: torch.dtype) -> None:
    scores = scores_of(L, S).to(dtype)
    weights, exact = monotonic.align_expected(scores), align_by_recursion(scores.double())
    assert weights.dtype == dtype
    assert monotonic.align_hard(scores).dtype == dtype
    unit = torch.finfo(dtype)
    assert ((weights.double() - exact).abs() <= exact * unit.eps / 2 * 1.001 + unit.tiny + 1e-6).all()


def test_per_sample_gradients_work() -> None:
    scores = scores_of(B, L, S)

    def loss(one: Tensor) -> Tensor:
        weights = monotonic.align_expected(one)
        return monotonic.attend_chunkwise(weights, one, 3).square().sum()

    found = torch.func.vmap(torch.func.grad(loss))(scores)
    wanted = torch.stack([torch.func.grad(loss)(one) for one in scores])
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)


def test_a_gradient_by_something_else_may_pass_by() -> None:
    """Within torch.func a function that does not know of it raises, even on tensors that are not its business."""
    scores, factor = scores_of(L, S), scores_of(L, S)
    found = torch.func.grad(lambda other: (monotonic.align_expected(scores) * other).sum())(factor)
    torch.testing.assert_close(found, monotonic.align_expected(scores), rtol=1e-12, atol=1e-14)
