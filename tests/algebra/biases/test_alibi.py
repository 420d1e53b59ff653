"""Attention with linear biases."""

import re

import pytest
import torch

from regard import ALiBi, Causal, InputError, Lengths, Mask, Sigmoid, Softmax, SoftmaxPlusOne, Window, attend
from regard.algebra.biases.alibi import compute_slopes
from regard.algebra.pairs import Pairs


def test_the_slopes_of_eight_heads_are_the_papers() -> None:
    """Press et al. 2022, §3: 1/2, 1/4, … 1/256; sixteen heads put a power of 2^0.5 between them."""
    assert compute_slopes(8).tolist() == [2.0**-n for n in range(1, 9)]
    assert torch.allclose(
        compute_slopes(16), torch.tensor([2.0 ** (-n / 2) for n in range(1, 17)], dtype=torch.float64)
    )
    assert torch.equal(compute_slopes(6), torch.cat([compute_slopes(4), compute_slopes(8)[:4:2]]))  # BLOOM's


def test_the_numbers_fall_with_the_distance() -> None:
    table = ALiBi(2)(Pairs(3, 3))  # slopes 1/16 and 1/256
    distance = torch.tensor([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert torch.equal(table, torch.stack([-distance / 16, -distance / 256]).double())


def test_the_last_query_sits_on_the_last_key() -> None:
    assert (-16 * ALiBi(2)(Pairs(2, 5))[0]).tolist() == [[3, 2, 1, 0, 1], [4, 3, 2, 1, 0]]


@pytest.mark.parametrize("mask", [Causal(), Causal() & Lengths(torch.tensor([[3], [7]])), Window(before=2, after=0)])
def test_under_a_causal_softmax_a_number_for_each_key_says_the_same(mask: Mask) -> None:
    bias, queries, keys = ALiBi(3), 5, 7
    assert bias.form(causal=mask.causal, shift_invariant=True, keys=7) == "column"
    scores = torch.randn(2, 3, queries, keys, dtype=torch.float64)
    pairs = Pairs(queries, keys)
    dense, column = scores + bias(pairs), scores + bias.column(pairs)[..., None, :]
    allowed = mask.table(queries, keys)
    found, true = Softmax()(column, allowed, pairs), Softmax()(dense, allowed, pairs)
    assert torch.allclose(found, true, rtol=0, atol=1e-14)


def test_a_column_never_overflows_far_along() -> None:
    """It counts back from the last key, so that the numbers are those of the distance, not of the place."""
    assert ALiBi(3).column(Pairs(1, 100_000)).max() == 0


@pytest.mark.parametrize(
    ("causal", "shift_invariant"), [(False, True), (True, False), (False, False)], ids=["ahead", "sigmoid", "both"]
)
def test_elsewhere_the_column_would_be_wrong_and_is_not_used(causal: bool, shift_invariant: bool) -> None:
    assert ALiBi(3).form(causal=causal, shift_invariant=shift_invariant, keys=7) == "dense"


@pytest.mark.parametrize("normalizer", [Softmax(), Sigmoid(), SoftmaxPlusOne()], ids=repr)
@pytest.mark.parametrize("mask", [Causal(), Lengths(torch.tensor([[3], [7]]))], ids=["causal", "lengths"])
def test_attend_adds_it_whatever_it_becomes(mask: Mask, normalizer: Softmax | Sigmoid | SoftmaxPlusOne) -> None:
    query, key, value = (torch.randn(2, 3, n, 11, dtype=torch.float64) for n in (5, 7, 7))
    scores = query @ key.mT / 11**0.5
    distance = (torch.arange(7)[None, :] - (torch.arange(5)[:, None] + 2)).abs()
    scores = scores - compute_slopes(3)[:, None, None] * distance
    weights = normalizer(scores, mask.table(5, 7), Pairs(5, 7))
    found = attend(query, key, value, bias=ALiBi(3), mask=mask, normalizer=normalizer).output
    assert torch.allclose(found, weights @ value, rtol=0, atol=1e-12)


def test_slopes_are_no_parameters_and_no_state() -> None:
    assert list(ALiBi(3).parameters()) == []
    assert ALiBi(3).state_dict() == {}


def test_no_heads_is_one_sentence() -> None:
    sentence = (
        "heads: got 0, expected a number of heads, at least 1, or a slope for each; "
        "fix: write ALiBi(8), or ALiBi(slopes=…)"
    )
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        ALiBi(0)


def test_other_heads_are_one_sentence() -> None:
    sentence = (
        "bias: got lead axes (4,), expected axes that broadcast to (2, 3); "
        "fix: give it size-1 axes where it is shared, for example lengths[:, None] for (batch, heads)"
    )
    query = torch.ones(2, 3, 5, 7)
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        attend(query, query, query, bias=ALiBi(4))


def test_steep_slopes_over_many_keys_keep_their_digits() -> None:
    """Counted from the last key, a number for each key is -2,048 for the first, and as a float32 off by 1e-4."""
    torch.manual_seed(4)
    query, key, value = (torch.randn(1, 4096, 8, dtype=torch.float64) for _ in range(3))
    steep = ALiBi(slopes=torch.tensor([0.5]))
    found = attend(*(tensor.float() for tensor in (query, key, value)), bias=steep, mask=Causal()).output
    place = torch.arange(64)
    scores = query[:, :64] @ key[:, :64].mT / 8**0.5 - 0.5 * (place[:, None] - place)
    true = scores.masked_fill(place > place[:, None], -torch.inf).softmax(-1) @ value[:, :64]
    assert float((found[:, :64] - true).abs().max()) < 1e-5
