"""Luong's general score, full and of low rank."""

import re

import pytest
import torch

from regard import Bilinear, InputError, attend

QUERY, KEY = 3, 2


def test_it_is_the_double_sum_over_the_matrix() -> None:
    score = Bilinear(QUERY, KEY)
    score.weight.data = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    query, key = torch.tensor([[1.0, 10.0, 100.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
    assert score(query, key).tolist() == [[531.0, 642.0, 2 * 531.0 - 642.0]]


def test_the_identity_gives_the_dot_product() -> None:
    score = Bilinear(7, 7)
    score.weight.data = torch.eye(7)
    query, key = torch.randn(3, 7), torch.randn(5, 7)
    assert torch.allclose(score(query, key), query @ key.T)


def test_low_rank_is_the_product_of_its_factors() -> None:
    """And its matrix has that rank."""
    low, full = Bilinear(11, 13, rank=3).double(), Bilinear(11, 13).double()
    full.weight.data = low.left @ low.right.T
    query, key = torch.randn(2, 5, 11, dtype=torch.float64), torch.randn(2, 7, 13, dtype=torch.float64)
    assert torch.allclose(low(query, key), full(query, key), rtol=0, atol=1e-12)
    assert int(torch.linalg.matrix_rank(low.left @ low.right.T)) == 3
    assert sum(p.numel() for p in low.parameters()) == 3 * (11 + 13)


def test_its_dot_form_moves_only_the_query() -> None:
    score, query, key = Bilinear(11, 13), torch.randn(5, 11), torch.randn(7, 13)
    form = score.dot_form(query, key)
    assert form.key is key
    assert form.query.shape == (5, 13)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("query", "key", "sentence"),
    [
        (5, 2, "query: got width 5, expected the score's own 3; fix: build Bilinear(5, 2)"),
        (3, 5, "key: got width 5, expected the score's own 2; fix: build Bilinear(3, 5)"),
    ],
)
@pytest.mark.parametrize("rank", [None, 1])
def test_other_widths_are_one_sentence(query: int, key: int, sentence: str, rank: int | None) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attend(torch.ones(5, query), torch.ones(7, key), torch.ones(7, 3), score=Bilinear(QUERY, KEY, rank=rank))


@pytest.mark.parametrize("rank", [0, 3])
def test_a_rank_out_of_range_is_one_sentence(rank: int) -> None:
    sentence = f"rank: got {rank}, expected 1 … 2; fix: use a rank below both widths, or none"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        Bilinear(QUERY, KEY, rank=rank)
