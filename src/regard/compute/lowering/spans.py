"""How a table of pairs is cut into blocks of queries, each with the range of keys that its mask leaves."""

import math

import torch

from regard.algebra.masks import Causal, Full
from regard.algebra.pairs import Span
from regard.algebra.parts import Parts
from regard.algebra.shapes import Tensor
from regard.compute.lowering import gather
from regard.compute.lowering.conditions import needs_dense_bias

# Queries in a fused block: below, calls cost more than work; above, hidden pairs do.
SMALLEST, LARGEST = 64, 512


BLOCK = 2**22  # numbers in a table that need not be cut: 16 MB in float32
PIECE = 2**21  # numbers in a block of one that must be: several such tables live at a time


def choose_rows_per_block(per_row: int, queries: int, *, budget: int = BLOCK) -> int:
    """Return how many queries fit a block if each needs a table row of `per_row` numbers: all of them, or few.

    >>> choose_rows_per_block(2**18, 16), choose_rows_per_block(2**18, 17)
    (16, 8)
    """
    if per_row * queries <= budget:
        return queries
    return max(1, min(budget, PIECE) // max(1, per_row))


def cut_fused_spans(parts: Parts, queries: int, keys: int) -> list[Span]:
    """Return blocks for fused calls, about as long as the window is wide: that reads the fewest hidden keys."""
    if may_gather(parts, queries, keys) and gather.is_sparse(parts.mask, queries, keys):
        return gather.gather_spans(parts, queries, keys, gather.ROWS)
    width = parts.mask.width
    size = LARGEST if width is None else min(LARGEST, max(SMALLEST, width))
    if needs_dense_bias(parts, keys):  # its table is written out for each block
        size = SMALLEST
    return cut_spans(parts, queries, keys, size)


def cut_row_spans(parts: Parts, query: Tensor, key: Tensor) -> list[Span]:
    """Return blocks whose table of scores is written out, small enough to bound the memory."""
    queries, keys = query.shape[-2], key.shape[-2]
    first, second = query.shape[:-2], key.shape[:-2]
    lead = math.prod(first if first == second else torch.broadcast_shapes(first, second))  # `broadcast_shapes` is slow
    sparse = may_gather(parts, queries, keys) and gather.is_sparse(parts.mask, queries, keys)
    width = None if type(parts.mask) in (Full, Causal) else parts.mask.width
    visible = (
        gather.count_visible(parts.mask, queries, keys) if sparse else keys if width is None else min(keys, 4 * width)
    )
    # A score without a normal form may write the hidden axis out too.
    depth = query.shape[-1] if parts.score.form == "pointwise" else 1
    size = choose_rows_per_block(lead * visible * depth, queries)
    if sparse:
        return gather.gather_spans(parts, queries, keys, size)
    if width is not None:
        size = min(size, max(SMALLEST, width))
    return cut_spans(parts, queries, keys, size)


def may_gather(parts: Parts, queries: int, keys: int) -> bool:
    """Return whether some keys of a row can be computed without the others, by their index, and are worth it."""
    if queries * keys < gather.SMALLEST_TABLE:
        return False
    return not (parts.normalizer.whole_rows or parts.aggregate.whole_rows or parts.score.uses_key_positions)


def cut_spans(parts: Parts, queries: int, keys: int, size: int) -> list[Span]:
    """Return blocks of `size` queries; each has at least one key, or a kernel would have nothing to read."""
    spans = []
    whole = parts.normalizer.whole_rows or parts.aggregate.whole_rows
    # A tracer that counts through a range fixes the length; a single block leaves it free.
    for start in [0] if size >= queries else range(0, queries, size):
        stop = min(queries, start + size)
        first, last = (0, keys) if whole else parts.mask.span(start, stop, queries, keys)
        first = min(first, keys - 1) if first and not parts.score.uses_key_positions else 0
        spans.append(Span(start, stop, first, max(last, first + 1)))
    return spans
