"""Weights: found again when they are asked for, at the price of what is asked, equal to the dense definition."""

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from regard import (
    Additive,
    ALiBi,
    Argmax,
    Bilinear,
    Causal,
    CenteredWindow,
    FeatureDot,
    Full,
    Gaussian,
    InputError,
    Laplacian,
    Lengths,
    LocalGaussian,
    Mask,
    Monotonic,
    Prior,
    Relative,
    RowTotal,
    ScaledDot,
    Softmax,
    SoftmaxPlusOne,
    Sparsemax,
    Weights,
    Window,
    attend,
)
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Tensor
from regard.compute import weights

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13

CASES: dict[str, dict[str, Any]] = {
    # with totals: the fused kernel leaves them
    "plain": {},
    "causal": {"mask": Causal()},
    "lengths": {"mask": Lengths(torch.tensor([[4], [0]]))},
    "table": {"mask": Mask.keep(torch.rand(B, 1, L, S, generator=torch.Generator().manual_seed(0)) < 0.5)},
    "tempered": {"normalizer": Softmax(torch.nn.Parameter(torch.tensor([3.0, 1.0, 0.5])))},
    "gaussian": {"score": Gaussian(torch.nn.Parameter(torch.tensor([3.0, 1.0, 0.5]))), "mask": Causal()},
    "bilinear and gaussian": {"score": 0.3 * Bilinear(D, D) + Gaussian(1.4)},
    "prior": {"bias": Prior(torch.linspace(-1, 1, S, dtype=torch.float64))},
    "alibi": {"bias": ALiBi(H), "mask": Causal()},
    "alibi both ways": {"bias": ALiBi(H), "normalizer": Softmax(0.5)},
    "relative, no gradient": {"bias": Relative(H).requires_grad_(False), "mask": Window(before=2, after=2)},
    # without
    "local": {"mask": Window(before=1, after=2), "backend": "local"},
    "around": {"mask": CenteredWindow(torch.tensor([0.0, 1, 2, 9, 4]), 1), "backend": "local"},
    "plus one": {"normalizer": SoftmaxPlusOne(), "mask": Causal()},
    "local-p": {"normalizer": LocalGaussian(torch.linspace(0, 6, L, dtype=torch.float64), 1.5)},
    "additive": {"score": Additive(D, heads=H), "mask": Causal()},
    "laplacian": {"score": Laplacian()},
    "sparsemax": {"normalizer": Sparsemax(), "mask": Lengths(torch.tensor([[4], [0]]))},
    "linear": {"score": FeatureDot(), "normalizer": RowTotal(), "mask": Causal()},
    "monotonic": {"normalizer": Monotonic()},
    "argmax": {"aggregate": Argmax()},
}
WITH_TOTALS = list(CASES)[:11]


def move_parts(options: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    for part in options.values():
        if isinstance(part, torch.nn.Module):
            part.to(dtype)
    return options


def tensors(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (torch.randn(B, H, n, w, dtype=torch.float64).to(dtype) for n, w in ((L, D), (S, D), (S, E)))
    return query, key, value


def compute_by_definition(query: Tensor, key: Tensor, options: dict[str, Any]) -> Tensor:
    """Return scores, bias, mask, normalizer and aggregate, written out."""
    pairs = Pairs(L, S)
    scores = options.get("score", ScaledDot())(query, key)
    if "bias" in options:
        scores = scores + options["bias"](pairs).to(scores.dtype)
    table = options.get("normalizer", Softmax())(scores, options.get("mask", Full()).table(L, S), pairs)
    return options["aggregate"](table, pairs, None).weights if "aggregate" in options else table


@pytest.mark.parametrize("name", CASES)
def test_every_view_of_the_weights_is_the_definitions(name: str) -> None:
    options = move_parts(CASES[name], torch.float64)
    query, key, value = tensors()
    found = attend(query, key, value, **options).weights
    true = compute_by_definition(query, key, options).detach()

    def is_near(part: Tensor, whole: Tensor) -> bool:
        return part.shape == whole.shape and torch.allclose(part, whole, rtol=0, atol=1e-10)

    assert found.shape == (B, H, L, S)
    assert is_near(found.dense(), true)
    assert is_near(found.tile(slice(1, 4), slice(2, 7)), true[..., 1:4, 2:7])
    assert is_near(found.tile(slice(-1, None), slice(None, 3)), true[..., -1:, :3])
    assert is_near(found.entropy(), torch.special.entr(true).sum(-1))
    assert is_near(found.received_weight(), true.sum(-2))
    assert is_near(found.top(3).weights, true.topk(3).values)
    assert is_near(true.gather(-1, found.top(3).keys), found.top(3).weights)
    summary = found.summary(3)
    assert is_near(summary.entropy, found.entropy())
    assert is_near(summary.received, found.received_weight())
    assert is_near(summary.top.weights, found.top(3).weights)


@pytest.mark.parametrize("name", WITH_TOTALS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_in_every_dtype_they_are_right_to_rounding(name: str, dtype: torch.dtype) -> None:
    """Against the definition in float64 of the same, already rounded, numbers.

    A weight is exp(score − total): its error is that of the score, times the weight. A score is a sum of `width`
    products of rounded factors, each at most 10 here, in float32 whatever the dtype; half precision rounds the
    queries once more where they are scaled or mapped.
    """
    query, key, value = tensors(dtype)
    rounded = move_parts(copy.deepcopy(CASES[name]), dtype)
    found = attend(query, key, value, **rounded).weights
    assert found.dense().dtype == torch.promote_types(dtype, torch.float32)
    true = compute_by_definition(
        query.double(), key.double(), move_parts(copy.deepcopy(rounded), torch.float64)
    ).detach()
    eps = torch.finfo(dtype).eps
    bound = 2e-6 if dtype == torch.float32 else 2 * eps * 10
    for part, whole in (
        (found.dense(), true),
        (found.tile(slice(None), slice(None)), true),
        (found.received_weight() / L, true.mean(-2)),
    ):
        assert (part.double() - whole).abs().max() <= bound


def test_the_kernels_totals_are_used_where_there_are_some() -> None:
    """That these cases test the path from totals, and the others do not, is itself a claim."""
    for name, options in CASES.items():
        found = attend(*tensors(), **move_parts(options, torch.float64)).weights
        if name != "local":  # windows leave totals where they go many to a call
            assert (found.totals is not None) == (name in WITH_TOTALS), name


@pytest.mark.parametrize("name", CASES)
def test_dense_weights_have_a_gradient_and_the_others_none(name: str) -> None:
    options = move_parts(CASES[name], torch.float64)
    query, key, value = (tensor.requires_grad_() for tensor in tensors())
    found = attend(query, key, value, **options).weights
    mixture = torch.randn(B, H, L, S, dtype=torch.float64)
    (grad,) = torch.autograd.grad((found.dense() * mixture).sum(), query)
    (true,) = torch.autograd.grad((compute_by_definition(query, key, options) * mixture).sum(), query)
    assert torch.allclose(grad, true, rtol=0, atol=1e-9)
    for part in (found.tile(slice(0, 2), slice(0, 2)), found.entropy(), found.received_weight(), found.top(2).weights):
        assert not part.requires_grad
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("name", ["plain", "additive", "sparsemax", "local", "linear"])
def test_nothing_is_computed_before_it_is_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def count_calls(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: calls.append(function.__name__) or function(*args, **kwargs)

    monkeypatch.setattr(weights, "weigh", count_calls(weights.weigh))
    monkeypatch.setattr(weights, "_compute_log_weights", count_calls(weights._compute_log_weights))
    found = attend(*tensors(), **move_parts(CASES[name], torch.float64)).weights
    assert calls == []
    found.tile(slice(0, 1), slice(0, 1))
    assert len(calls) == 1


def test_a_tile_costs_no_more_than_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a fused call only the rows and columns that are asked for are multiplied."""
    asked: list[tuple[int, ...]] = []
    original = weights._compute_log_weights

    def spy(*args: Any) -> Tensor:
        made = original(*args)
        asked.append(tuple(made.shape))
        return made

    monkeypatch.setattr(weights, "_compute_log_weights", spy)
    attend(*tensors()).weights.tile(slice(1, 3), slice(2, 7))
    assert asked == [(B, H, 2, 5)]


@pytest.mark.parametrize("name", ["plain", "causal", "additive", "sparsemax"])
def test_blocks_of_queries_make_no_difference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = move_parts(CASES[name], torch.float64)
    query, key, value = tensors()
    found = attend(query, key, value, **options).weights
    whole = found.entropy(), found.received_weight(), *found.top(2)
    monkeypatch.setattr(weights, "BLOCK", 2)
    parts = found.entropy(), found.received_weight(), *found.top(2)
    for a, b in zip(parts, whole, strict=True):
        assert torch.allclose(a.double(), b.double(), rtol=0, atol=1e-13)


def test_dropout_is_not_in_the_weights() -> None:
    query, key, value = tensors()
    found = attend(query, key, value, dropout=0.5).weights.dense()
    assert torch.allclose(found, compute_by_definition(query, key, {}), rtol=0, atol=1e-12)


def test_slices_mean_what_they_mean_for_a_list() -> None:
    found = attend(*tensors()).weights
    whole = found.tile(slice(None), slice(None))
    assert whole.shape == (B, H, L, S)
    for rows in (slice(0, 0), slice(3, 1), slice(-2, None), slice(1, 100), slice(-100, 2)):
        assert torch.allclose(found.tile(rows, slice(None)), whole[..., rows, :], rtol=0, atol=1e-15)
        assert torch.allclose(found.tile(slice(0, 1), rows), whole[..., :1, rows], rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["plain", "lengths", "additive", "sparsemax"])
def test_a_batch_that_only_the_values_have_is_a_batch_of_the_weights(name: str) -> None:
    options = move_parts(CASES[name], torch.float64)
    query, key, value = tensors()
    attended = attend(query[0], key[0], value, **options)
    found = attended.weights
    assert found.shape == (B, H, L, S)
    assert torch.allclose(found.dense() @ value, attended.output, rtol=0, atol=1e-12)
    assert torch.allclose(found.tile(slice(None), slice(None)) @ value, attended.output, rtol=0, atol=1e-12)
    assert found.entropy().shape == (B, H, L)


def test_grouped_heads_share_keys_and_have_weights_of_their_own() -> None:
    query, key, value = torch.randn(B, H, 2, L, D), torch.randn(B, H, 1, S, D), torch.randn(B, H, 1, S, E)
    attended = attend(query, key, value, mask=Causal())
    assert attended.weights.shape == (B, H, 2, L, S)
    assert torch.allclose(attended.weights.dense() @ value, attended.output, atol=1e-6)


def test_the_sizes_of_a_handle_are_known_at_no_cost() -> None:
    handle = attend(*tensors()).weights
    assert isinstance(handle, Weights)
    assert handle.shape == (B, H, L, S)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda w: w.top(0), "k: got 0, expected 1 … keys=7; fix: ask for no more keys than there are"),
        (lambda w: w.top(8), "k: got 8, expected 1 … keys=7; fix: ask for no more keys than there are"),
        (lambda w: w.summary(8), "k: got 8, expected 1 … keys=7; fix: ask for no more keys than there are"),
        (
            lambda w: w.tile(slice(0, 4, 2), slice(None)),
            "rows: got a step of 2, expected a step of 1; fix: take the tile and index it",
        ),
        (
            lambda w: w.tile(slice(None), slice(None, None, -1)),
            "columns: got a step of -1, expected a step of 1; fix: take the tile and index it",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(ask: Callable[[Weights], object], sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        ask(attend(*tensors()).weights)


@pytest.mark.parametrize("case", ["plain", "lengths", "plus one", "bilinear and gaussian"])
def test_an_index_is_that_of_the_dense_weights(case: str) -> None:
    query, key, value = (torch.randn(B, H, n, d, dtype=torch.float64) for n, d in ((L, D), (S, D), (S, E)))
    parts = {name: part.double() if isinstance(part, torch.nn.Module) else part for name, part in CASES[case].items()}
    output, weights = attend(query, key, value, **parts)
    dense = weights.dense()
    torch.testing.assert_close(output, dense @ value)
    for index in (
        0,
        (0, 2),
        (1, slice(None), 3),
        (0, 1, -1, 4),
        (..., slice(1, 3), slice(2, None)),
        (..., slice(0, 5, 2), slice(None)),
        (..., slice(2, 2), slice(None)),
        (slice(None), 1, ..., 0),
        (0, None),
        torch.tensor([1, 0]),
        dense > 0.5,
    ):
        torch.testing.assert_close(weights[index], dense[index])
    assert (weights.numpy() == dense.detach().numpy()).all()
    assert (np.asarray(weights) == dense.detach().numpy()).all()
    assert [tuple(row.shape) for row in weights] == [(H, L, S)] * B
    for bad in (B, (0, 0, L), (0, 0, 0, 0, 0)):
        with pytest.raises(IndexError):
            weights[bad]


def test_an_index_computes_only_the_rows_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(B, L, D)
    handle, asked = attend(x, x, x).weights, []
    compute = Weights._compute_rows
    monkeypatch.setattr(Weights, "_compute_rows", lambda own, *rows: asked.append(rows) or compute(own, *rows))
    handle[0, 3], handle[:, 1:3], handle[1]
    assert asked == [(3, 4), (1, 3), (0, L)]


def test_an_index_has_a_gradient() -> None:
    x = torch.randn(L, D, requires_grad=True)
    attend(x, x, x).weights[2, 1].backward()
    assert x.grad is not None
    assert x.grad[2].abs().sum() > 0
