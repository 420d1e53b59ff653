"""Scores kept in a range."""

import math
import re

import pytest
import torch

from regard import Capped, Dot, Gaussian, InputError, attend


def test_it_squeezes_by_tanh() -> None:
    found = Capped(Dot(), cap=2.0)(torch.tensor([[1.0]]), torch.tensor([[0.0], [1.0], [-1e6], [1e6]]))
    assert torch.allclose(found, torch.tensor([[0.0, 2 * math.tanh(0.5), -2.0, 2.0]]))


def test_far_below_the_cap_it_changes_little() -> None:
    """c tanh(s / c) = s − s³ / 3c² + …, so the change is below s³ / 3c²."""
    query, key = torch.randn(5, 11, dtype=torch.float64), torch.randn(7, 11, dtype=torch.float64)
    plain = Dot()(query, key)
    change = (Capped(Dot(), cap=100.0)(query, key) - plain).abs()
    assert (change <= plain.abs() ** 3 / 3e4 + 1e-12).all()
    assert (change > 0).any()


def test_the_streamed_form_caps_the_streamed_score() -> None:
    score, query, key = Capped(Gaussian(1 / 3), cap=5.0), torch.randn(5, 11).double(), torch.randn(7, 11).double()
    assert torch.allclose(score.stream(query, key), score(query, key), rtol=0, atol=1e-12)


@pytest.mark.parametrize("cap", [0.0, -1.0, float("nan")])
def test_a_cap_that_is_none_is_one_sentence(cap: float) -> None:
    sentence = f"cap: got {cap}, expected a number above 0; fix: use 30.0 or 50.0, the usual ones"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        Capped(Dot(), cap=cap)


@pytest.mark.usefixtures("as_installed")
def test_the_score_inside_checks_the_widths() -> None:
    with pytest.raises(InputError, match=r"^key: got width 13, expected the width of the query, 11; "):
        attend(torch.ones(5, 11), torch.ones(7, 13), torch.ones(7, 3), score=Capped(Dot()))
