"""Checks of cross-attention: every part of its mechanism is used, and parts without a meaning there raise."""

from regard.algebra.aggregates import Soft
from regard.algebra.definition import apply_dropout
from regard.algebra.normalizers import LocalGaussian, SequentialNormalizer
from regard.algebra.pairs import Pairs
from regard.algebra.parts import Parts
from regard.algebra.shapes import Tensor
from regard.compute.checks import check
from regard.compute.kernels import noise
from regard.errors import wrong
from regard.layers.attention import Attention
from regard.layers.memory import Memory


def check_source_attention(attention: Attention, *, sequential: bool = False) -> None:
    """Raise if an attention depends on the positions of its queries, which are hypotheses side by side.

    `sequential`: it attends step by step, so that its rows may depend on the rows before.
    """
    mechanism = attention.mechanism
    if attention.rotary is not None:
        fix = "add positions to the source, or leave rotary out"
        raise wrong("attention.rotary", "RotaryPositions", "none in cross-attention", fix)
    if mechanism.bias is not None and not mechanism.bias.columnwise:
        expected, fix = "one that gives every query the same number for a key", "use Prior, or a number for all keys"
        raise wrong("mechanism.bias", type(mechanism.bias).__name__, expected, fix)
    rows = isinstance(mechanism.normalizer, SequentialNormalizer) and not sequential
    if rows or isinstance(mechanism.normalizer, LocalGaussian):
        expected = "one whose rows stand alone, with no center of their own"
        fix = "use MonotonicAttention(…)" if rows else "use PredictiveScope(…)"
        raise wrong("mechanism.normalizer", type(mechanism.normalizer).__name__, expected, fix)


def check_single_head(attention: Attention, fix: str) -> None:
    """Raise unless an attention has one head and the soft aggregate, which its user computes with."""
    heads, aggregate = attention.projections.heads, attention.mechanism.aggregate
    if heads != 1:
        raise wrong("attention.heads", heads, "1, because one head alone is computed here", "use one head")
    if type(aggregate) is not Soft:
        raise wrong("mechanism.aggregate", type(aggregate).__name__, "Soft", fix)


def build_parts(attention: Attention, query: Tensor, memory: Memory) -> Parts:
    """Return the parts of an attention to this memory, checked as `attend` checks them."""
    mechanism = attention.mechanism
    mask = memory.mask.add_head_axis()
    parts = Parts(mechanism.score, mechanism.bias, mask, mechanism.normalizer, mechanism.aggregate)
    check(parts, query, memory.key, memory.value, attention.dropout)
    return parts


def drop_weights(attention: Attention, weights: Tensor, pairs: Pairs) -> Tensor:
    """Apply the attention's dropout to weights, while it trains."""
    if not attention.training or not attention.dropout:
        return weights
    return apply_dropout(weights, pairs, noise.draw_seed(weights.device), attention.dropout)
