"""The best of each row, natively and in torch."""

import pytest
import torch

from regard.numerics import native
from regard.numerics import ranking as module
from regard.numerics.ranking import rank

R, V = 5, 101


@pytest.fixture(params=["native", "torch"], autouse=True)
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    kind: str = request.param
    if kind == "torch":
        monkeypatch.setattr(module.native, "library", lambda **_: None)
    elif native.library() is None:
        pytest.skip("no compiler here")
    return kind


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 7, 16, 33, V])
@pytest.mark.parametrize("excluded", [(), (0,), (2, 5)])
def test_it_is_a_sort(dtype: torch.dtype, size: int, excluded: tuple[int, ...]) -> None:
    left = [place for place in range(size) if place not in excluded]
    outside = torch.tensor([place for place in excluded if place < size], dtype=torch.long)
    if not left:
        return
    scores = 9 * torch.randn(R, size, dtype=dtype)
    found = rank(scores, 3, outside)
    order = scores[:, left].argsort(dim=1, descending=True)[:, :3]
    assert torch.equal(found.tokens, torch.tensor(left)[order])
    assert torch.equal(found.scores, scores.gather(1, found.tokens))
    torch.testing.assert_close(found.totals, scores.logsumexp(1))


def test_fewer_than_wanted_are_all() -> None:
    assert rank(torch.randn(R, 4), 9, torch.tensor([1])).tokens.sort(1).values.tolist() == [[0, 2, 3]] * R


def test_what_is_impossible_comes_last() -> None:
    scores = torch.full((1, 20), float("-inf"))
    scores[0, 17] = 2.0
    found = rank(scores, 2, torch.tensor([], dtype=torch.long))
    assert found.tokens[0, 0] == 17
    assert found.scores[0].tolist() == [2.0, float("-inf")]
    assert found.totals.tolist() == [2.0]
