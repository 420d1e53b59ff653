"""Which parts an attention to a source may have: no part is ever left out, and what has no meaning there is refused."""

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
    """Raise where an attention counts the positions of its queries: hypotheses that ask side by side have none.

    `sequential`: it is asked step by step, so that its rows may follow one another.
    """
    mechanism = attention.mechanism
    if attention.rotary is not None:
        fix = "add positions to the source, or leave rotary out"
        raise wrong("attention.rotary", "Rotary", "none where a decoder reads a source", fix)
    if mechanism.bias is not None and not mechanism.bias.columnwise:
        expected, fix = "one that gives every query the same number for a key", "use Prior, or a number for all keys"
        raise wrong("mechanism.bias", type(mechanism.bias).__name__, expected, fix)
    rows = isinstance(mechanism.normalizer, SequentialNormalizer) and not sequential
    if rows or isinstance(mechanism.normalizer, LocalGaussian):
        expected = "one whose rows stand alone, with no center of their own"
        fix = "read with Walking(…)" if rows else "read with Near(…)"
        raise wrong("mechanism.normalizer", type(mechanism.normalizer).__name__, expected, fix)


def check_single_head(attention: Attention, fix: str) -> None:
    """Raise where an attention has more than the one head and the soft aggregate that its user computes with."""
    heads, aggregate = attention.projections.heads, attention.mechanism.aggregate
    if heads != 1:
        raise wrong("attention.heads", heads, "1, because the weights of one head are gone on from", "use one head")
    if type(aggregate) is not Soft:
        raise wrong("mechanism.aggregate", type(aggregate).__name__, "Soft", fix)


def build_parts(attention: Attention, query: Tensor, memory: Memory) -> Parts:
    """The parts that these heads read a memory by, checked as every attention is."""
    mechanism = attention.mechanism
    mask = memory.mask.add_head_axis()
    parts = Parts(mechanism.score, mechanism.bias, mask, mechanism.normalizer, mechanism.aggregate)
    check(parts, query, memory.key, memory.value, attention.dropout)
    return parts


def drop_weights(attention: Attention, weights: Tensor, pairs: Pairs) -> Tensor:
    """The weights with the attention's own dropout, while it trains."""
    if not attention.training or not attention.dropout:
        return weights
    return apply_dropout(weights, pairs, noise.draw_seed(weights.device), attention.dropout)
