"""The dot form and the algebra of sums and multiples."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import Additive, Bilinear, Cosine, Dot, DotForm, FeatureDot, Gaussian, InputError, Laplacian, Score
from regard.algebra.scores.base import Multiple, Offset, Sum, as_dot, split_precision
from regard.algebra.shapes import Tensor

B, L, S = 2, 5, 7
DOTS: list[Score] = [
    Dot(),
    Gaussian(0.5),
    Gaussian(torch.tensor([0.5, 2.0], dtype=torch.float64)),
    Cosine(0.3),
    Cosine(torch.tensor([0.3, 0.7], dtype=torch.float64)),
    FeatureDot(),
    Bilinear(3, 3),
]


def draw_normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@st.composite
def draw_dot_form(draw: st.DrawFn) -> DotForm:
    """Draw any dot form of B × L × S: widths, scales, rows, columns and lead axes there or not."""
    seed, width = draw(st.integers(0, 2**16)), draw(st.integers(1, 3))
    lead = draw(st.sampled_from([(B,), (1,), ()]))
    scale = draw(st.one_of(st.floats(-3, 3), st.just(draw_normal(B, 1, 1, seed=seed + 4))))
    row = draw_normal(*lead, L, seed=seed + 2) if draw(st.booleans()) else None
    column = draw_normal(*lead, S, seed=seed + 3) if draw(st.booleans()) else None
    return DotForm(draw_normal(*lead, L, width, seed=seed), draw_normal(B, S, width, seed=seed + 1), scale, row, column)


@given(draw_dot_form(), draw_dot_form())
def test_dot_forms_add(left: DotForm, right: DotForm) -> None:
    total = left + right
    assert torch.allclose(total.compute_scores(), left.compute_scores() + right.compute_scores(), rtol=0, atol=1e-10)
    assert total.query.shape[-1] == left.query.shape[-1] + right.query.shape[-1]


@given(draw_dot_form(), st.one_of(st.floats(-5, 5), st.just(torch.tensor([[[2.0]], [[-3.0]]]).double())))
def test_dot_forms_have_multiples(form: DotForm, factor: float | Tensor) -> None:
    assert torch.allclose(form.multiply(factor).compute_scores(), form.compute_scores() * factor, rtol=0, atol=1e-10)


@given(draw_dot_form())
def test_a_folded_form_is_the_same_in_query_and_key_alone(form: DotForm) -> None:
    whole = form.fold_offsets(keep_row=True)
    assert whole.row is None
    assert whole.column is None
    assert torch.allclose(
        whole.compute_scores(), form.compute_scores().expand_as(whole.compute_scores()), rtol=0, atol=1e-10
    )


@given(draw_dot_form())
def test_without_its_row_a_form_differs_by_a_number_for_each_query(form: DotForm) -> None:
    difference = form.compute_scores() - form.fold_offsets(keep_row=False).compute_scores()
    assert torch.allclose(difference, difference[..., :1].expand_as(difference), rtol=0, atol=1e-10)


@given(draw_dot_form())
def test_unscaled_moves_the_scale_into_the_queries(form: DotForm) -> None:
    assert form.fold_scale().scale == 1.0
    assert torch.allclose(form.fold_scale().compute_scores(), form.compute_scores(), rtol=0, atol=1e-10)


@given(draw_dot_form(), st.integers(0, 99))
def test_a_column_is_added_to_every_row(form: DotForm, seed: int) -> None:
    column = draw_normal(B, S, seed=seed)
    assert torch.allclose(
        form.add_column(column).compute_scores(), form.compute_scores() + column[:, None, :], rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_in_half_precision_a_column_keeps_the_digits_of_both_parts(dtype: torch.dtype) -> None:
    """High and low part together err by one rounding of the low part: eps² / 4 of the number, or one step of zero."""
    numbers = torch.linspace(-37.0, 41.0, 997)
    high, low = split_precision(numbers, dtype)
    eps, smallest = torch.finfo(dtype).eps, torch.finfo(dtype).smallest_normal
    error = (high.double() + low.double() - numbers.double()).abs()
    assert (error <= numbers.abs().double() * eps**2 / 4 + smallest * eps).all()


@pytest.mark.parametrize("left", DOTS, ids=repr)
@pytest.mark.parametrize("right", DOTS, ids=repr)
def test_sums_and_multiples_of_scores_have_a_dot_form(left: Score, right: Score) -> None:
    """Two derivations of the same numbers: the formulas added up, and one product of wider vectors."""
    score = (0.5 * left + right * -2.0).double()
    assert score.form == "dot"
    query, key = draw_normal(3, 2, L, 3, seed=1), draw_normal(3, 2, S, 3, seed=2)
    by_hand = 0.5 * left.double()(query, key) - 2.0 * right.double()(query, key)
    assert torch.allclose(score(query, key), by_hand, rtol=0, atol=1e-12)
    assert torch.allclose(as_dot(score).dot_form(query, key).compute_scores(), by_hand, rtol=0, atol=1e-10)


@pytest.mark.parametrize("other", [Laplacian(), Additive(3)], ids=repr)
def test_a_sum_has_a_dot_form_only_if_both_have(other: Score) -> None:
    assert (Dot() + other).form == "pointwise"
    assert (2.0 * other).form == "pointwise"
    assert (2.0 * Dot()).form == "dot"


def test_a_sum_of_three_is_a_sum_of_sums() -> None:
    score = Dot() + Gaussian() + Cosine()
    assert isinstance(score, Sum)
    assert score.form == "dot"
    query, key = draw_normal(L, 3, seed=1), draw_normal(S, 3, seed=2)
    assert torch.allclose(score(query, key), Dot()(query, key) + Gaussian()(query, key) + Cosine()(query, key))


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("other", ["dot", None, [1.0], 1j])
def test_only_scores_and_numbers_add_up(other: object) -> None:
    with pytest.raises(TypeError):
        Dot() + other  # type: ignore[operator]
    with pytest.raises(TypeError):
        other + Dot()  # type: ignore[operator]


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("score", [Dot(), Gaussian(0.5), Laplacian()], ids=repr)
@pytest.mark.parametrize("number", [1, -0.5, torch.tensor([1.0, -3.0], dtype=torch.float64)], ids=repr)
def test_a_number_is_added_to_every_score(score: Score, number: float | Tensor) -> None:
    """One number, or one for each head, from either side, by the formula and by the dot form."""
    query, key = draw_normal(3, 2, L, 3, seed=1), draw_normal(3, 2, S, 3, seed=2)
    by_hand = score(query, key) + (number[:, None, None] if isinstance(number, Tensor) else number)
    for total in (score + number, number + score):
        assert isinstance(total, Offset)
        assert total.form == score.form
        assert torch.allclose(total(query, key), by_hand, rtol=0, atol=1e-12)
        assert torch.allclose(total.stream(query, key), by_hand, rtol=0, atol=1e-10)


@pytest.mark.usefixtures("as_installed")
def test_only_numbers_multiply() -> None:
    with pytest.raises(TypeError):
        Dot() * "two"  # type: ignore[operator]
    assert isinstance(Dot() * 2, Multiple)


def test_asking_a_score_without_a_dot_form_for_it_is_one_sentence() -> None:
    sentence = "^score: got Laplacian, expected a score with a dot form; fix: ask `score.form` first$"
    with pytest.raises(InputError, match=sentence):
        as_dot(Laplacian())


def test_a_scores_tensors_are_found_once_parameters_or_not() -> None:
    width = torch.tensor(2.0, requires_grad=True)
    score = Gaussian(width) + 0.5 * Gaussian(width) + Bilinear(3, 5)
    assert len(score.tensors()) == 2
    assert score.wants_grad
    assert not Gaussian(2.0).wants_grad
