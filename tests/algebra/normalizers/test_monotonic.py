"""Normalizers whose rows follow one another, through `attend` and step by step."""

import itertools
import re

import pytest
import torch

from regard import ChunkwiseMonotonic, HardMonotonic, InputError, Lengths, Monotonic, Normalizer, attend
from regard.algebra.normalizers import SequentialNormalizer
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Tensor

L, S = 3, 5
SEQUENTIAL: list[SequentialNormalizer] = [Monotonic(), HardMonotonic(), ChunkwiseMonotonic(3)]


def sum_over_walks(scores: Tensor) -> Tensor:
    """Sum over every way to stop: query i goes on from where query i − 1 stopped, or is off the end."""
    stop = torch.sigmoid(scores)
    weights = torch.zeros_like(scores)
    for places in itertools.product(range(S + 1), repeat=L):  # S: ran off the last key
        probability, start = 1.0, 0
        for query, place in enumerate(places):
            if place < start:
                probability = 0.0
                break
            probability *= float((1 - stop[query, start:place]).prod())
            probability *= float(stop[query, place]) if place < S else 1.0
            start = place
        for query, place in enumerate(places):
            if place < S:
                weights[query, place] += probability
    return weights


def test_the_expected_alignment_is_the_sum_over_all_walks() -> None:
    scores = 2 * torch.randn(L, S, dtype=torch.float64)
    assert torch.allclose(Monotonic()(scores, None, Pairs(L, S)), sum_over_walks(scores), rtol=0, atol=1e-12)


def test_the_hard_walk_takes_the_first_key_that_says_stop() -> None:
    scores = torch.tensor([[-1.0, 2, -1, 2, -1], [3, -1, -1, 1, 1], [3, 3, 3, -1, -1]])
    found = HardMonotonic()(scores, None, Pairs(L, S))
    assert found.tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]


def test_certain_scores_make_the_expected_walk_the_hard_one() -> None:
    scores = 80 * torch.randn(2, L, S, dtype=torch.float64).sign()
    pairs = Pairs(L, S)
    assert torch.allclose(Monotonic()(scores, None, pairs), HardMonotonic()(scores, None, pairs), rtol=0, atol=1e-12)


def test_chunks_are_a_soft_look_at_the_keys_before() -> None:
    """Chiu & Raffel 2018, eq. 10, in loops over where the walk stopped."""
    scores, width = torch.randn(L, S, dtype=torch.float64), 3
    walk = sum_over_walks(scores)
    true = torch.zeros_like(scores)
    for query in range(L):
        for place in range(S):
            chunk = range(max(0, place - width + 1), place + 1)
            total = sum(float(scores[query, s].exp()) for s in chunk)
            for s in chunk:
                true[query, s] += walk[query, place] * float(scores[query, s].exp()) / total
    assert torch.allclose(ChunkwiseMonotonic(width)(scores, None, Pairs(L, S)), true, rtol=0, atol=1e-12)


def test_chunks_of_one_are_the_walk() -> None:
    scores = torch.randn(L, S, dtype=torch.float64)
    pairs = Pairs(L, S)
    assert torch.allclose(ChunkwiseMonotonic(1)(scores, None, pairs), Monotonic()(scores, None, pairs), atol=1e-14)


@pytest.mark.parametrize("normalizer", SEQUENTIAL[:2], ids=repr)
def test_stepping_is_the_whole(normalizer: SequentialNormalizer) -> None:
    scores = torch.randn(2, L, S, dtype=torch.float64)
    allowed = Lengths(torch.tensor([3, 5])).table(L, S)
    whole, previous = normalizer(scores, allowed, Pairs(L, S)), None
    for query in range(L):
        rows = slice(query, query + 1)
        step = normalizer.step(scores[:, rows], allowed[:, rows], previous=previous)
        assert torch.allclose(step[:, 0], whole[:, query], rtol=0, atol=1e-14)
        previous = step[:, 0]


def test_a_decoder_steps_the_walk_and_looks_softly() -> None:
    normalizer = ChunkwiseMonotonic(3)
    scores = torch.randn(2, L, S, dtype=torch.float64)
    whole, walked = normalizer(scores, None, Pairs(L, S)), None
    for query in range(L):
        rows = slice(query, query + 1)
        walk = normalizer.walk.step(scores[:, rows], None, previous=walked)
        assert torch.allclose(
            normalizer.attend_chunks(walk, scores[:, rows], None)[:, 0], whole[:, query], rtol=0, atol=1e-14
        )
        walked = walk[:, 0]


@pytest.mark.parametrize("normalizer", SEQUENTIAL, ids=repr)
def test_rows_sum_to_one_or_less_and_padding_gets_nothing(normalizer: Normalizer) -> None:
    query, key, value = (torch.randn(2, 3, n, 7, dtype=torch.float64) for n in (L, S, S))
    attended = attend(query, key, value, normalizer=normalizer, mask=Lengths(torch.tensor([[3], [0]])))
    weights = attended.weights.dense()
    assert (weights >= 0).all()
    assert (weights.sum(-1) <= 1 + 1e-12).all()
    assert (weights[0, ..., 3:] == 0).all()
    assert (weights[1] == 0).all()
    assert attended.plan.backend == "eager"


def test_a_tile_of_a_later_row_knows_the_rows_before() -> None:
    query, key, value = (torch.randn(n, 7, dtype=torch.float64) for n in (L, S, S))
    weights = attend(query, key, value, normalizer=Monotonic()).weights
    assert torch.allclose(weights.tile(slice(2, 3), slice(1, 4)), weights.dense()[2:3, 1:4], rtol=0, atol=1e-15)


def test_a_walk_is_trained_by_its_expectation() -> None:
    scores = torch.randn(L, S, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: Monotonic()(s, None, Pairs(L, S)), scores)
    assert torch.autograd.gradcheck(lambda s: ChunkwiseMonotonic(2)(s, None, Pairs(L, S)), scores)


@pytest.mark.parametrize("width", [0, -1])
def test_a_chunk_without_keys_is_one_sentence(width: int) -> None:
    sentence = f"width: got {width}, expected at least 1; fix: use 1 for the walk alone, 4 or 8 for speech"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        ChunkwiseMonotonic(width)
