"""The definition of attention: what every backend is compared with, and what those in blocks of queries run."""

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
    """Return aggregate( normalizer( score(q, k) + bias(i, j), mask(i, j) ) ).

    `pairs` has all columns if a part needs whole rows; otherwise at least all that the mask allows.
    """
    scores = score_pairs(parts, score, query, key, pairs)
    allowed = None if type(parts.mask) is Full else parts.mask.allows(pairs)
    weights = parts.normalizer(scores, allowed, pairs)
    result: AggregateResult = parts.aggregate(weights, pairs, seed)
    return result


def score_pairs(parts: Parts, score: ScoreFunction, query: Tensor, key: Tensor, pairs: Pairs) -> Tensor:
    """Return score(q, k) + bias(i, j)."""
    scores = score(query, key)
    return scores if parts.bias is None else scores + parts.bias(pairs).to(scores.dtype)


def average_values(
    call: AttentionCall, score: ScoreFunction, query: Tensor, key: Tensor, value: Tensor, pairs: Pairs
) -> BlockOutput:
    """Return the weighted average over these pairs of a call, with its dropout on the weights."""
    weights, log_prob = weigh(call.parts, score, query, key, pairs, seed=call.seed)
    if call.dropout:
        weights = apply_dropout(weights, pairs, call.seed, call.dropout)
    return BlockOutput(weights @ value.to(weights.dtype), log_prob)


def apply_dropout(weights: Distribution, pairs: Pairs, seed: Tensor | None, rate: float) -> Distribution:
    """Drop a share `rate` of the weights and scale the rest up. A pair's noise depends on its indices alone."""
    if not rate or seed is None:
        return weights
    # The aggregate draws from `seed` itself, and dropout must not be correlated with its choice.
    keep = noise.draw_dropout_factors(seed + 1, weights.shape[:-2], pairs.row[:, 0], pairs.column[0], rate)
    return weights * keep.to(weights.dtype)


def compute_wide_score(score: ScoreFunction, query: Tensor, key: Tensor) -> Tensor:
    """Return a score, computed in its own precision, in at least float32, so that half precision is rounded once."""
    return widen(score(query, key))
