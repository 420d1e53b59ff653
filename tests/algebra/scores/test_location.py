"""Luong's location score."""

import re

import pytest
import torch

from regard import InputError, Location, Window, attend
from regard.compute.planning import BackendName


def test_it_is_a_row_of_the_matrix_for_each_place() -> None:
    score = Location(2, keys=3)
    score.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
    assert score(torch.tensor([[5.0, 7.0]]), torch.zeros(3, 4)).tolist() == [[5.0, 7.0, 3.0]]
    assert score(torch.tensor([[5.0, 7.0]]), torch.zeros(2, 4)).tolist() == [[5.0, 7.0]]


@pytest.mark.parametrize("backend", ["eager", "sdpa", "stream"])
def test_no_key_is_read(backend: BackendName) -> None:
    score, query, value = Location(11, keys=13), torch.randn(2, 5, 11), torch.randn(2, 7, 3)
    found = [attend(query, key, value, score=score, backend=backend).output for key in torch.randn(2, 2, 7, 17)]
    assert torch.equal(*found)


def test_a_window_does_not_move_the_places() -> None:
    """A block that left out the keys before the window would count from the wrong one."""
    score = Location(11, keys=601).double()
    query, key, value = (torch.randn(601, width, dtype=torch.float64) for width in (11, 3, 5))
    window = Window(before=7, after=3)
    found = attend(query, key, value, score=score, mask=window, backend="local").output
    assert torch.allclose(found, attend(query, key, value, score=score, mask=window, backend="eager").output)
    deeper = attend(query, key, value, score=0.5 * (score + score), mask=window, backend="stream").output
    assert torch.allclose(found, deeper)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("query", "keys", "sentence"),
    [
        (11, 7, "key: got 7 keys, expected at most 5; fix: build Location(11, keys=7)"),
        (13, 5, "query: got width 13, expected the score's own 11; fix: build Location(13, keys=5)"),
    ],
)
def test_what_does_not_fit_is_one_sentence(query: int, keys: int, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attend(torch.ones(2, query), torch.ones(keys, 3), torch.ones(keys, 3), score=Location(11, keys=5))
