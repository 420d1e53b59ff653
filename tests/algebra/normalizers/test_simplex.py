"""Normalizers whose rows stand alone: what they promise, by properties and by other people's code."""

import math
import re
from collections.abc import Callable

import entmax as teacher
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard import (
    Entmax,
    Entmax15,
    InputError,
    KindError,
    LocalGaussian,
    Normalizer,
    RowTotal,
    Sigmoid,
    Softmax,
    SoftmaxPlusOne,
    Sparsemax,
    attend,
)
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Tensor

L, S = 3, 7
PAIRS = Pairs(L, S)
ONE_SUM: dict[str, Normalizer] = {
    "softmax": Softmax(),
    "tempered": Softmax(0.3),
    "sparsemax": Sparsemax(),
    "entmax15": Entmax15(),
    "entmax 1.2": Entmax(1.2),
    "entmax 3": Entmax(3.0),
}
LESS: dict[str, Normalizer] = {
    "plus one": SoftmaxPlusOne(),
    "local-p": LocalGaussian(torch.tensor([0.0, 3.3, 9.0]), 2.0),
}
FREE: dict[str, Normalizer] = {"sigmoid": Sigmoid(-1.0), "row total": RowTotal()}
ALL = ONE_SUM | LESS | FREE

numbers = st.floats(-30, 30, allow_nan=False)


@st.composite
def draw_tables(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Draw scores and what is allowed; often with an empty row, ties and far-apart numbers."""
    scores = draw(st.lists(numbers, min_size=L * S, max_size=L * S))
    allowed = draw(st.lists(st.booleans(), min_size=L * S, max_size=L * S))
    cells = torch.tensor(allowed).view(L, S)
    if draw(st.booleans()):
        cells[draw(st.integers(0, L - 1))] = False
    return torch.tensor(scores, dtype=torch.float64).view(L, S), cells


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=30)
@given(table=draw_tables())
def test_weights_are_not_negative_and_what_is_hidden_weighs_nothing(name: str, table: tuple[Tensor, Tensor]) -> None:
    scores, allowed = table
    scores = scores.abs() if name == "row total" else scores  # it is for scores that are never negative
    weights = ALL[name](scores, allowed, PAIRS)
    assert (weights >= 0).all()
    assert torch.isfinite(weights).all()
    assert (weights[~allowed] == 0).all()
    broken = scores.masked_fill(~allowed, float("nan"))
    assert torch.equal(ALL[name](broken, allowed, PAIRS), weights)


@pytest.mark.parametrize("name", ONE_SUM)
@settings(max_examples=30)
@given(table=draw_tables())
def test_rows_sum_to_one_or_are_empty(name: str, table: tuple[Tensor, Tensor]) -> None:
    scores, allowed = table
    sums = ONE_SUM[name](scores, allowed, PAIRS).sum(-1)
    assert torch.allclose(sums, allowed.any(-1).double(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LESS)
@settings(max_examples=30)
@given(table=draw_tables())
def test_rows_that_may_look_at_nothing_sum_to_less(name: str, table: tuple[Tensor, Tensor]) -> None:
    scores, allowed = table
    assert (LESS[name](scores, allowed, PAIRS).sum(-1) <= 1 + 1e-12).all()


@pytest.mark.parametrize("name", [n for n in ALL if ALL[n].shift_invariant])
@settings(max_examples=30)
@given(table=draw_tables(), shift=st.floats(-5, 5))
def test_a_shift_of_a_row_changes_nothing_where_that_is_said(
    name: str, table: tuple[Tensor, Tensor], shift: float
) -> None:
    """A normalizer that calls itself shift-invariant lets a kernel drop whatever is the same for all keys."""
    scores, allowed = table
    moved = ALL[name](scores + shift, allowed, PAIRS)
    assert torch.allclose(moved, ALL[name](scores, allowed, PAIRS), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", [n for n in ALL if not ALL[n].shift_invariant and n != "local-p"])
def test_those_that_feel_a_shift_do_not_claim_otherwise(name: str) -> None:
    """local-p feels none either, but its rows do not sum to one: a kernel handles it apart."""
    scores, allowed = torch.rand(L, S, dtype=torch.float64) + 1, torch.ones(L, S, dtype=torch.bool)
    assert not torch.allclose(ALL[name](scores + 1, allowed, PAIRS), ALL[name](scores, allowed, PAIRS), atol=1e-3)


@pytest.mark.parametrize("name", [n for n in ALL if n != "local-p"])
@settings(max_examples=20)
@given(table=draw_tables(), order=st.permutations(range(S)))
def test_permuting_the_keys_permutes_the_weights(name: str, table: tuple[Tensor, Tensor], order: list[int]) -> None:
    scores, allowed = (tensor.abs() if tensor.is_floating_point() else tensor for tensor in table)
    found = ALL[name](scores[:, order], allowed[:, order], PAIRS)
    assert torch.allclose(found, ALL[name](scores, allowed, PAIRS)[:, order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in ALL if n != "local-p"])
def test_permuting_keys_and_values_together_changes_nothing(name: str) -> None:
    query, key, value = (torch.rand(2, n, 11, dtype=torch.float64) for n in (L, S, S))
    order = torch.randperm(S)
    plain = attend(query, key, value, normalizer=ALL[name]).output
    mixed = attend(query, key[:, order], value[:, order], normalizer=ALL[name]).output
    assert torch.allclose(mixed, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("junk", [0.0, 1e6, -1e6, float("nan"), float("inf")], ids=str)
def test_padding_changes_nothing(name: str, junk: float) -> None:
    scores = torch.rand(L, S, dtype=torch.float64)
    longer = torch.nn.functional.pad(scores, (0, 4), value=junk)
    allowed = (torch.arange(S + 4) < S).expand(L, S + 4)
    found = ALL[name](longer, allowed, Pairs(L, S + 4))
    assert torch.allclose(found[:, :S], ALL[name](scores, None, PAIRS), rtol=0, atol=1e-14)
    assert (found[:, S:] == 0).all()


@pytest.mark.parametrize("name", ALL)
def test_no_mask_is_a_mask_that_allows_all(name: str) -> None:
    scores = torch.rand(2, L, S, dtype=torch.float64)
    everything = torch.ones(1, 1, dtype=torch.bool)
    found, true = ALL[name](scores, None, PAIRS), ALL[name](scores, everything, PAIRS)
    assert torch.allclose(found, true, rtol=0, atol=1e-15)


TEACHERS: dict[str, tuple[Normalizer, Callable[[Tensor], Tensor]]] = {
    "sparsemax": (Sparsemax(), lambda s: teacher.sparsemax(s, dim=-1)),
    "entmax15": (Entmax15(), lambda s: teacher.entmax15(s, dim=-1)),
    "entmax 1.3": (Entmax(1.3), lambda s: teacher.entmax_bisect(s, alpha=1.3, dim=-1, n_iter=100)),
    "entmax 1.5": (Entmax(1.5), lambda s: teacher.entmax15(s, dim=-1)),
    "entmax 2": (Entmax(2.0), lambda s: teacher.sparsemax(s, dim=-1)),
}


@pytest.mark.parametrize("name", TEACHERS)
def test_the_entmax_package_agrees(name: str) -> None:
    mine, theirs = TEACHERS[name]
    scores = (3 * torch.randn(2, 31, 37, dtype=torch.float64)).requires_grad_()
    found, true = mine(scores, None, Pairs(31, 37)), theirs(scores)
    assert torch.allclose(found, true, rtol=0, atol=1e-9)
    mixture = torch.randn_like(scores)
    (ours,) = torch.autograd.grad((found * mixture).sum(), scores)
    (other,) = torch.autograd.grad((true * mixture).sum(), scores)
    assert torch.allclose(ours, other, rtol=0, atol=1e-8)


def test_the_entmax_package_agrees_on_the_gradient_to_alpha() -> None:
    scores = 2 * torch.randn(3, 31, 37, dtype=torch.float64)
    mixture = torch.randn_like(scores)
    alpha = torch.tensor([1.2, 1.5, 1.9], dtype=torch.float64, requires_grad=True)
    (ours,) = torch.autograd.grad((Entmax(alpha)(scores, None, Pairs(31, 37)) * mixture).sum(), alpha)
    given = alpha.detach()[:, None, None].expand(3, 31, 1).clone().requires_grad_()
    theirs = teacher.entmax_bisect(scores, alpha=given, dim=-1, n_iter=100)
    (other,) = torch.autograd.grad((theirs * mixture).sum(), given)
    assert torch.allclose(ours, other.sum((1, 2)), rtol=1e-6, atol=1e-6)


@settings(max_examples=30)
@given(table=draw_tables())
def test_entmax_goes_from_softmax_to_sparsemax(table: tuple[Tensor, Tensor]) -> None:
    scores, allowed = table
    ends = {1.0: Softmax(), 1.5: Entmax15(), 2.0: Sparsemax()}
    for alpha, end in ends.items():
        true = end(scores, allowed, PAIRS)
        assert torch.allclose(Entmax(alpha)(scores, allowed, PAIRS), true, rtol=0, atol=1e-12)
        given = torch.tensor(alpha, dtype=torch.float64)  # as a tensor it takes the general path
        assert torch.allclose(Entmax(given)(scores, allowed, PAIRS), true, rtol=0, atol=1e-9)


def test_a_larger_alpha_leaves_fewer_keys() -> None:
    scores = torch.randn(1, 101, dtype=torch.float64)
    counts = [int((Entmax(a)(scores, None, Pairs(1, 101)) > 0).sum()) for a in (1.0, 1.25, 1.5, 2.0, 4.0)]
    assert counts[0] == 101
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < counts[1] < 101


def test_sparsemax_by_hand() -> None:
    found = Sparsemax()(torch.tensor([[0.5, 0.3, 0.0, -1.0]]), None, Pairs(1, 4))
    assert torch.allclose(found, torch.tensor([[0.5 + 0.2 / 3, 0.3 + 0.2 / 3, 0.2 / 3, 0.0]]))


def test_softmax_plus_one_by_hand() -> None:
    scores = torch.tensor([[math.log(2), math.log(3)], [-1e4, -1e4], [1e4, -1e4]], dtype=torch.float64)
    found = SoftmaxPlusOne()(scores, None, Pairs(3, 2))
    assert torch.allclose(found, torch.tensor([[2 / 6, 3 / 6], [0.0, 0.0], [1.0, 0.0]]).double())


def test_softmax_plus_one_is_softmax_with_a_key_of_score_zero_and_value_zero() -> None:
    query, key, value = (torch.randn(2, n, 11, dtype=torch.float64) for n in (L, S, S))
    nothing = torch.zeros(2, 1, 11, dtype=torch.float64)
    longer = attend(query, torch.cat([key, nothing], 1), torch.cat([value, nothing], 1)).output
    assert torch.allclose(attend(query, key, value, normalizer=SoftmaxPlusOne()).output, longer, rtol=0, atol=1e-13)


def test_temperature_divides_the_scores() -> None:
    scores = torch.randn(2, 3, L, S, dtype=torch.float64)
    heads = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    found = Softmax(heads)(scores, None, PAIRS)
    assert torch.allclose(found, torch.softmax(scores / heads[:, None, None], -1), rtol=0, atol=1e-14)


def test_sigmoid_stands_for_itself() -> None:
    scores = torch.tensor([[0.0, math.log(3)]])
    assert torch.allclose(Sigmoid()(scores, None, Pairs(1, 2)), torch.tensor([[0.5, 0.75]]))
    assert torch.allclose(Sigmoid(-math.log(3))(scores, None, Pairs(1, 2)), torch.tensor([[0.25, 0.5]]))


def test_row_total_divides_by_the_sum() -> None:
    scores = torch.tensor([[1.0, 3.0, 4.0], [0.0, 0.0, 0.0]])
    assert RowTotal()(scores, None, Pairs(2, 3)).tolist() == [[0.125, 0.375, 0.5], [0.0, 0.0, 0.0]]


def test_what_is_learned_is_a_parameter_and_trains() -> None:
    for normalizer in (Softmax.learned(0.7, heads=3), Entmax.learned(1.3, heads=3)):
        (parameter,) = normalizer.parameters()
        weights = normalizer(torch.randn(2, 3, L, S), None, PAIRS)
        (grad,) = torch.autograd.grad(weights.square().sum(), parameter)
        assert grad.shape == (3,)
        assert (grad != 0).all()


HALVES = {
    "tempered": Softmax(0.3),
    "tempered heads": Softmax(torch.tensor([0.3, 0.7])),
    "shifted": Sigmoid(-6.9),
    "shifted heads": Sigmoid(torch.tensor([-6.9, 3.0])),
    "entmax heads": Entmax(torch.tensor([1.3, 4.0])),
    "local-p": LocalGaussian(torch.rand(2, L) * S, 2.0),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", HALVES)
def test_half_precision_is_rounded_once_whatever_the_setting(name: str, dtype: torch.dtype) -> None:
    scores = (8 * torch.randn(2, L, S)).to(dtype)
    found, exact = HALVES[name](scores, None, PAIRS), HALVES[name](scores.float(), None, PAIRS)
    assert found.dtype == dtype
    assert torch.equal(found, exact.to(dtype))


def test_a_center_far_along_is_not_rounded_with_the_positions() -> None:
    """In float16 the position 3001 does not exist."""
    pairs, center = Pairs(1, 3005), torch.tensor([3000.0], dtype=torch.float16)
    found = LocalGaussian(center, 2.0).log_gaussian(pairs, center)[0, 2998:3003]
    assert found.tolist() == [-0.5, -0.125, 0.0, -0.125, -0.5]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_totals_beyond_all_numbers_still_divide(dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    scores = torch.tensor([[largest, largest, largest / 2, 0.0]] * L, dtype=dtype).requires_grad_()
    weights = RowTotal()(scores, None, Pairs(L, 4))
    torch.testing.assert_close(weights.detach(), torch.tensor([[0.4, 0.4, 0.2, 0.0]] * L, dtype=dtype))
    assert torch.isfinite(torch.autograd.grad(weights[:, 0].sum(), scores)[0]).all()


@pytest.mark.parametrize("name", [*ONE_SUM, "plus one"])
def test_the_largest_and_the_smallest_scores_are_scores(name: str) -> None:
    for extreme in (1e30, 3e38, -1e30, -3e38):
        scores = torch.tensor([[extreme, 0.0, -extreme], [extreme] * 3, [extreme, -math.inf, -math.inf]])
        if name == "tempered" and abs(extreme) > 1e38:
            continue  # 3e38 over 0.3 is no float32
        weights = ALL[name](scores, None, Pairs(3, 3))
        assert torch.isfinite(weights).all()
        if name in ONE_SUM:
            torch.testing.assert_close(weights.sum(-1), torch.ones(3))


def test_an_alpha_that_left_its_range_in_training_is_one_sentence() -> None:
    normalizer = Entmax.learned(1.1, heads=2)
    with torch.no_grad():
        normalizer.alpha[1] = math.nan
    with pytest.raises(InputError, match=r"^alpha: got nan, expected a number above 0 and at most 100; fix: clamp"):
        normalizer(torch.randn(2, L, S), None, PAIRS)


SENTENCES = {
    "temperature": (
        lambda: Softmax(0.0),
        "temperature: got 0.0, expected a number above 0; fix: use 1.0 for plain softmax, Argmax() for 0",
    ),
    "alpha": (
        lambda: Entmax(-0.5),
        "alpha: got -0.5, expected a number above 0 and at most 100; fix: use 1 for softmax, 1.5, or 2 for sparsemax",
    ),
    "no alpha": (
        lambda: Entmax(float("nan")),
        "alpha: got nan, expected a number above 0 and at most 100; fix: use 1 for softmax, 1.5, or 2 for sparsemax",
    ),
    "large alpha": (
        lambda: Entmax(101.0),
        "alpha: got 101.0, expected a number above 0 and at most 100; fix: use 1 for softmax, 1.5, or 2 for sparsemax",
    ),
    "learned alpha": (
        lambda: Entmax(torch.tensor([1.5, -0.5])),
        "alpha: got -0.5, expected a number above 0 and at most 100; "
        "fix: clamp it after each step, or learn the argument of 1 + softplus",
    ),
    "deviation": (
        lambda: LocalGaussian(torch.zeros(3), 0.0),
        "deviation: got 0.0, expected a number above 0; fix: use half the radius of the window",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_settings_out_of_range_are_one_sentence(name: str) -> None:
    build, sentence = SENTENCES[name]
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        build()


@pytest.mark.usefixtures("as_installed")
def test_centers_in_a_list_are_one_sentence() -> None:
    with pytest.raises(KindError, match=r"^center: got a list, expected a tensor; fix: write torch.tensor\(...\)$"):
        LocalGaussian([1.0, 2.0], 1.0)  # type: ignore[arg-type]
