"""The best of each row, natively and in torch."""

from collections.abc import Sequence

import pytest
import torch

from regard.compute.kernels import native
from regard.models.kernels import ranking as module
from regard.models.kernels.ranking import Ranking, rank

R, V = 5, 101


@pytest.fixture(params=["native", "torch"], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    kind: str = request.param
    if kind == "torch":
        monkeypatch.setattr(module, "find_library", lambda *_, **__: None)
    elif native.load_library() is None:
        pytest.skip("no compiler here")
    return kind


def rank_scores(scores: torch.Tensor, count: int, excluded: Sequence[int]) -> Ranking:
    """Rank scores as they are: each row's vector names one column of the matrix."""
    with torch.no_grad():
        return rank(torch.eye(len(scores), dtype=scores.dtype), scores.T, None, count, torch.tensor(excluded).long())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 7, 16, 33, V])
@pytest.mark.parametrize("excluded", [(), (0,), (2, 5)])
def test_it_is_a_sort(dtype: torch.dtype, size: int, excluded: tuple[int, ...]) -> None:
    left = [place for place in range(size) if place not in excluded]
    outside = [place for place in excluded if place < size]
    if not left:
        return
    scores = 9 * torch.randn(R, size, dtype=dtype)
    ranked = rank_scores(scores, 3, outside)
    order = scores[:, left].argsort(dim=1, descending=True)[:, :3]
    assert torch.equal(ranked.tokens, torch.tensor(left)[order])
    assert torch.equal(ranked.scores, scores.gather(1, ranked.tokens))
    assert torch.equal(ranked.excluded, scores[:, outside])
    torch.testing.assert_close(ranked.totals, scores.logsumexp(1))


@pytest.mark.parametrize("stretch", [1, 5 * 7, 5 * 16, 5 * 50, 1 << 20])
@pytest.mark.parametrize("biased", [False, True])
def test_a_vocabulary_in_stretches_is_the_whole(stretch: int, biased: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", stretch)
    vectors, weight = torch.randn(R, 8, dtype=torch.float64), 5 * torch.randn(V, 8, dtype=torch.float64)
    bias = 20 * torch.randn(V, dtype=torch.float64) if biased else None
    scores = torch.nn.functional.linear(vectors, weight, bias)
    with torch.no_grad():
        ranked = rank(vectors, weight, bias, 4, torch.tensor([100, 3]))
    best = scores.index_fill(1, torch.tensor([100, 3]), float("-inf")).topk(4)
    assert torch.equal(ranked.tokens, best.indices)
    torch.testing.assert_close(ranked.scores, best.values)
    torch.testing.assert_close(ranked.totals, scores.logsumexp(1))
    torch.testing.assert_close(ranked.excluded, scores[:, [100, 3]])


def test_fewer_than_wanted_are_all() -> None:
    assert rank_scores(torch.randn(R, 4), 9, [1]).tokens.sort(1).values.tolist() == [[0, 2, 3]] * R


def test_no_rows_have_nothing_to_rank() -> None:
    with torch.no_grad():
        assert rank(torch.zeros(0, 3), torch.randn(9, 3), None, 2, torch.tensor([1])).tokens.shape == (0, 2)


def test_what_is_impossible_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 4)
    bias = torch.full((20,), float("-inf"))
    bias[17] = 2.0
    with torch.no_grad():
        ranked = rank(torch.zeros(1, 3), torch.zeros(20, 3), bias, 2, torch.tensor([], dtype=torch.long))
    assert ranked.tokens[0, 0] == 17
    assert ranked.scores[0].tolist() == [2.0, float("-inf")]
    assert ranked.totals.tolist() == [2.0]
