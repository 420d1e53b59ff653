"""Attention as it is defined: the oracle of every backend, and the body of those that work in blocks of queries."""

from collections.abc import Callable

from regard.algebra.aggregates import AggregateResult
from regard.algebra.masks import Full
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall, Parts
from regard.algebra.shapes import Distribution, Tensor, widen
from regard.compute.kernels import noise
from regard.compute.kernels.blocks import BlockOutput

ScoreFunction = Callable[[Tensor, Tensor], Tensor]


def weigh(
    parts: Parts, score: ScoreFunction, query: Tensor, key: Tensor, pairs: Pairs, *, seed: Tensor | None
) -> AggregateResult:
    """normalizer( score(q, k) + bias(i, j), mask(i, j) ), then the reading. `pairs` has all columns."""
    scores = score_pairs(parts, score, query, key, pairs)
    allowed = None if type(parts.mask) is Full else parts.mask.allows(pairs)
    weights = parts.normalizer(scores, allowed, pairs)
    choice: AggregateResult = parts.aggregate(weights, pairs, seed)
    return choice


def score_pairs(parts: Parts, score: ScoreFunction, query: Tensor, key: Tensor, pairs: Pairs) -> Tensor:
    """score(q, k) + bias(i, j)."""
    scores = score(query, key)
    return scores if parts.bias is None else scores + parts.bias(pairs).to(scores.dtype)


def average_values(
    call: AttentionCall, score: ScoreFunction, query: Tensor, key: Tensor, value: Tensor, pairs: Pairs
) -> BlockOutput:
    """The weighted average of these pairs of a call, with dropout on the weights where it asks for it."""
    weights, log_prob = weigh(call.parts, score, query, key, pairs, seed=call.seed)
    return BlockOutput(apply_dropout(weights, pairs, call.seed, call.dropout) @ value.to(weights.dtype), log_prob)


def apply_dropout(weights: Distribution, pairs: Pairs, seed: Tensor | None, rate: float) -> Distribution:
    """Weights with a share `rate` of them dropped and the rest scaled up, by noise that knows its address."""
    if not rate or seed is None:
        return weights
    # The reading draws from `seed` itself: dropout must not be correlated with the pick.
    keep = noise.draw_dropout_factors(seed + 1, weights.shape[:-2], pairs.row[:, 0], pairs.column[0], rate)
    return weights * keep.to(weights.dtype)


def compute_wide_score(score: ScoreFunction, query: Tensor, key: Tensor) -> Tensor:
    """Return a score, computed in its own precision, in at least float32, so that half precision is rounded once."""
    return widen(score(query, key))
