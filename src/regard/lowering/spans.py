"""How a table of pairs is cut into blocks of queries, each with the range of keys that its mask leaves."""

import math

import torch

from regard.lowering.rules import dense_bias
from regard.numerics.blocks import Span, rows_per_block
from regard.parts import Parts
from regard.shapes import Tensor

SMALLEST, LARGEST = (
    64,
    512,
)  # queries in a fused block: below, calls cost more than work; above, unseen pairs do


def fused_spans(parts: Parts, queries: int, keys: int) -> list[Span]:
    """Blocks for fused calls: about as many queries as the window is wide, which reads the fewest keys in vain."""
    width = parts.mask.width
    size = LARGEST if width is None else min(LARGEST, max(SMALLEST, width))
    if dense_bias(parts, keys):  # its table is written out for each block
        size = SMALLEST
    return spans_of(parts, queries, keys, size)


def row_spans(parts: Parts, query: Tensor, key: Tensor) -> list[Span]:
    """Blocks whose table of scores is written out, small enough to bound the memory."""
    queries, keys = query.shape[-2], key.shape[-2]
    first, second = query.shape[:-2], key.shape[:-2]
    lead = math.prod(first if first == second else torch.broadcast_shapes(first, second))  # which is slow
    seen = keys if parts.mask.width is None else min(keys, 4 * parts.mask.width)
    # A score without a normal form may write the hidden axis out too.
    depth = query.shape[-1] if parts.score.form == "pointwise" else 1
    size = rows_per_block(lead * seen * depth, queries)
    if parts.mask.width is not None:
        size = min(size, max(SMALLEST, parts.mask.width))
    return spans_of(parts, queries, keys, size)


def spans_of(parts: Parts, queries: int, keys: int, size: int) -> list[Span]:
    """Blocks of `size` queries; each has at least one key, or a kernel would have nothing to read."""
    spans = []
    whole = parts.normalizer.whole_rows or parts.aggregate.whole_rows
    # A tracer that counts through a range fixes the length; a single block leaves it free.
    for start in [0] if size >= queries else range(0, queries, size):
        stop = min(queries, start + size)
        first, last = (0, keys) if whole else parts.mask.span(start, stop, queries, keys)
        first = 0 if parts.score.counts_keys else min(first, keys - 1)
        spans.append(Span(start, stop, first, max(last, first + 1)))
    return spans
