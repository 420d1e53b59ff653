"""Entropy, mass and the largest weights, from scores and totals, without writing the weights."""

import pytest
import torch

from regard.algebra.shapes import Tensor
from regard.compute.kernels import summary

ROWS, COLUMNS, K, SCALE = 67, 119, 5, 0.7


def scores(dtype: torch.dtype, columns: int = COLUMNS) -> tuple[Tensor, Tensor]:
    """Return scores with keys that no query may see, one row that sees nothing and one that sees two keys."""
    drawn = torch.randn(2, 3, ROWS, columns, dtype=dtype)
    drawn[..., 7:11] = float("-inf")
    drawn[0, 1, 13] = float("-inf")
    drawn[1, 2, 17, 2:] = float("-inf")
    total = torch.logsumexp(SCALE * drawn, -1)
    return drawn, torch.where(total == float("-inf"), 0.0, total)


@pytest.mark.parametrize("columns", [COLUMNS, 112, 13])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_native_pass_tells_what_the_weights_tell(dtype: torch.dtype, columns: int) -> None:
    table, total = scores(dtype, columns)
    weights = (SCALE * table.double() - total.double()[..., None]).exp()
    found = summary.summarize(table.repeat(1, 1, 40, 1), total.repeat(1, 1, 40), SCALE, K)
    bound = 64 * torch.finfo(dtype).eps
    assert torch.allclose(
        found.entropy[..., :ROWS].double(), torch.special.entr(weights).sum(-1), rtol=bound, atol=bound
    )
    assert torch.allclose(found.received.double(), 40 * weights.sum(-2), rtol=bound, atol=bound)
    assert torch.allclose(found.top.weights[..., :ROWS, :].double(), weights.topk(K).values, rtol=bound, atol=bound)
    own = weights.gather(-1, found.top.keys[..., :ROWS, :])
    assert torch.allclose(own, found.top.weights[..., :ROWS, :].double(), rtol=bound, atol=bound)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_totals_that_are_not_given_are_those_of_a_softmax(
    dtype: torch.dtype, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        monkeypatch.setattr(summary, "find_library", lambda *_: None)
    table, _ = scores(dtype)
    table += 200  # far beyond what an exponential could hold in float32
    seen = 3
    hidden = torch.ones(ROWS, COLUMNS, dtype=torch.bool).triu(seen)
    weights = (SCALE * table.double()).masked_fill(hidden, float("-inf")).softmax(-1).nan_to_num(0.0)
    found = summary.summarize(table, None, SCALE, K, seen=seen)
    bound = 2000 * torch.finfo(dtype).eps
    for own, expected in (
        (found.entropy, torch.special.entr(weights).sum(-1)),
        (found.received, weights.sum(-2)),
        (found.top.weights, weights.topk(K).values),
        (found.top.weights, weights.gather(-1, found.top.keys)),
        (found.total, (SCALE * table.double()).masked_fill(hidden, float("-inf")).logsumexp(-1)),
    ):
        assert torch.allclose(own.double(), expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("k", [1, 2, 16, 17, 40])
def test_the_largest_are_found_among_equals_and_whatever_their_order(k: int) -> None:
    rows = [torch.arange(90.0), torch.arange(90.0).flip(0), torch.zeros(90), torch.randn(90), torch.randn(90).round()]
    table = torch.stack(rows) / 10
    found = summary.summarize(table, None, 1.0, k)
    expected = table.double().softmax(-1)
    assert torch.allclose(found.top.weights.double(), expected.topk(k).values, rtol=1e-5)
    assert torch.allclose(expected.gather(-1, found.top.keys), found.top.weights.double(), rtol=1e-5)
    assert (found.top.keys.sort(-1).values.diff(dim=-1) > 0).all()


def test_no_key_is_named_twice_where_few_have_weight() -> None:
    table, total = scores(torch.float64)
    found = summary.summarize(table, total, SCALE, K)
    assert (found.top.keys.sort(-1).values.diff(dim=-1) > 0).all()
    assert (found.top.weights[0, 1, 13] == 0).all()
    assert found.entropy[0, 1, 13] == 0
