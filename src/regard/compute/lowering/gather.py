"""How attention under a sparse mask becomes calls over the keys that each block of queries may see.

A mask says which keys a block may see (`Mask.cover`), without a table of all pairs. Unions of windows with a few global
keys, packed documents and tables of blocks leave most keys out, though no single range of keys.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress
from typing import NamedTuple

import torch

from regard.algebra.masks import Mask
from regard.algebra.pairs import Pairs, RowBlocks, Span
from regard.algebra.parts import AttentionCall, Parts
from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.compute.kernels.gathered import GatheredGroup, gathered_attention
from regard.compute.kernels.native import tensor_memory
from regard.compute.lowering.conditions import needs_dense_bias
from regard.compute.lowering.fuse import FusedResult, compute_dot_form

ROWS = 64  # queries in a block
SEGMENT_ROWS = 1024  # … if all are of one segment, and so see much the same keys
ROUND = 16  # columns are a multiple of this: the lanes of a vector
SLACK = 1.2  # the largest block of a kernel has at most this many times the columns of the smallest
BUDGET = 2**23  # numbers in the tables or in the gradients of one group of blocks: 32 MB in float32
SMALLEST_TABLE = 2**18  # pairs; below, finding out what may be left out costs more than it saves
MOST_READ = 0.5  # share of all pairs; above, one piece with all pairs is as fast
SAMPLE = 16  # blocks from which that share is estimated
WIDE = 4  # a block that sees this many times the keys of the middle one is cut into its rows


class GatheredBlock(NamedTuple):
    """Some queries, the keys that they may see, and whether each of them sees all of these."""

    rows: Int[Tensor, " row"]
    columns: Int[Tensor, " column"]
    full: bool


class BlockCover(NamedTuple):
    """Blocks of queries, by their indices, and which keys each of them may see."""

    rows: list[Int[Tensor, " row"]]
    keys: Bool[Tensor, "block key"]

    @property
    def counts(self) -> list[int]:
        """How many keys each block may see."""
        counts: list[int] = self.keys.count_nonzero(-1).tolist()
        return counts


def is_sparse(mask: Mask, queries: int, keys: int) -> bool:
    """Return whether blocks of queries see few of the keys, but no single short range of them. Reads the mask."""
    if queries * keys < SMALLEST_TABLE or mask.columnwise or mask.width is not None or mask.allows_all(queries):
        return False
    readable = all(tensor.is_cpu and tensor_memory.is_readable(tensor) for tensor in mask.tensors())
    if tensor_memory.is_traced() or tensor_memory.is_intercepted() or not readable:
        return False
    blocks = cut_rows(mask, queries, keys)
    some = blocks[:: max(1, len(blocks) // SAMPLE)]
    read = sum(len(own) * count for own, count in zip(some, _cover(mask, queries, keys, some).counts, strict=True))
    return read <= MOST_READ * keys * sum(map(len, some))


def cover_blocks(mask: Mask, queries: int, keys: int) -> BlockCover:
    """Return blocks of queries that see much the same keys, and those keys.

    A query that sees far more than its neighbors, such as a global token, is kept apart from them.
    """
    cover = _cover(mask, queries, keys, cut_rows(mask, queries, keys))
    counts = cover.counts
    most = WIDE * sorted(counts)[len(counts) // 2]
    is_wide = [count > most and len(own) > 1 for own, count in zip(cover.rows, counts, strict=True)]
    if not any(is_wide):
        return merge_alike(cover)
    rows = torch.cat(list(compress(cover.rows, is_wide)))
    apart = torch.tensor(_cover(mask, queries, keys, rows.split(1)).counts) > most
    narrow = [own for own, wide in zip(cover.rows, is_wide, strict=True) if not wide]
    blocks = [*narrow, *rows[~apart].split(ROWS), *rows[apart].split(ROWS)]
    return _cover(mask, queries, keys, [own for own in blocks if len(own)])


def merge_alike(cover: BlockCover) -> BlockCover:
    """Return the same with neighboring blocks that see the same keys joined: fewer keys are gathered."""
    alike = (cover.keys[1:] == cover.keys[:-1]).all(-1).tolist()
    rows, first = [cover.rows[0]], [0]
    for block, same in enumerate(alike, 1):
        if same and len(rows[-1]) + len(cover.rows[block]) <= SEGMENT_ROWS:
            rows[-1] = torch.cat([rows[-1], cover.rows[block]])
        else:
            rows.append(cover.rows[block])
            first.append(block)
    return BlockCover(rows, cover.keys if len(first) == len(alike) + 1 else cover.keys[first])


def cut_rows(mask: Mask, queries: int, keys: int) -> list[Int[Tensor, " row"]]:
    """Return blocks of queries: those of one segment, or neighbors."""
    segments = mask.segment_queries(queries, keys)
    return list(torch.arange(queries).split(ROWS) if segments is None else cut_segments(mask, segments))


def _cover(mask: Mask, queries: int, keys: int, rows: Sequence[Tensor]) -> BlockCover:
    """Return which keys these blocks may see."""
    found = mask.cover(_stack_rows(rows, queries, keys)).expand(len(rows), keys)
    return BlockCover(list(rows), found)


def _stack_rows(rows: Sequence[Tensor], queries: int, keys: int) -> RowBlocks:
    width = max(map(len, rows))
    return RowBlocks(torch.stack([_repeat_last(own, width) for own in rows]), queries, keys)


def list_blocks(mask: Mask, queries: int, keys: int) -> list[GatheredBlock]:
    """Return blocks of queries with the keys that they may see."""
    cover = cover_blocks(mask, queries, keys)
    fully = mask.cover_fully(_stack_rows(cover.rows, queries, keys))
    full = (fully | ~cover.keys).all(-1).tolist()
    columns = cover.keys.nonzero()[:, 1].split(cover.counts)
    return [GatheredBlock(*block) for block in zip(cover.rows, columns, full, strict=True)]


def cut_segments(mask: Mask, segments: Int[Tensor, " query"]) -> Iterator[Int[Tensor, " row"]]:
    """Yield blocks of queries of one segment, or of several that are short."""
    most = SEGMENT_ROWS if mask.leaves() == [mask] else ROWS
    order = segments.argsort(stable=True)
    ends = segments[order].unique_consecutive(return_counts=True)[1].cumsum(0).tolist()
    start = 0
    for end in ends:
        while end - start >= most:
            yield order[start : start + most]
            start += most
        if 2 * (end - start) >= ROWS or end == ends[-1]:
            if end > start:
                yield order[start:end]
            start = end


def fuse_gathered(call: AttentionCall) -> FusedResult | None:
    """Return the output if this is a plain softmax under a sparse mask on the CPU; otherwise None."""
    inputs, parts = (call.query, call.key, call.value), call.parts
    plain = parts.normalizer.form == "softmax" and not needs_dense_bias(parts, call.keys)
    readable = tensor_memory.is_readable(*inputs) and all(tensor.is_cpu and tensor.numel() for tensor in inputs)
    if not plain or not readable or not is_sparse(parts.mask, call.queries, call.keys):
        return None
    raw = compute_dot_form(parts, call.query, call.key, call.pairs())[0]
    form = raw.fold_offsets(keep_row=False).make_scale_positive()
    lead = torch.broadcast_shapes(form.query.shape[:-2], form.key.shape[:-2], call.value.shape[:-2])
    blocks = list_blocks(parts.mask, call.queries, call.keys)
    empty = Pairs(call.queries, call.keys)
    width = max(form.query.shape[-1], call.value.shape[-1])
    groups = [
        make_group(parts.mask, some, empty, lead, form.query.dtype)
        for some in group_blocks(blocks, lead.numel(), width)
    ]
    output, total = gathered_attention(form.query, form.key, call.value, groups, scale=float(form.scale))
    return FusedResult(output, form, total, raw)


def group_blocks(blocks: Sequence[GatheredBlock], lead: int, width: int) -> Iterator[list[GatheredBlock]]:
    """Yield blocks of about one size, no more at a time than the budget allows."""
    group: list[GatheredBlock] = []
    for block in sorted(blocks, key=lambda block: (block.full, len(block.rows) > ROWS, len(block.columns))):
        rows, columns = max([len(block.rows), *(len(b.rows) for b in group)]), len(block.columns)
        numbers = (len(group) + 1) * max(lead, 1) * (columns + ROUND) * max(2 * width, rows)
        alike = group and columns <= SLACK * len(group[0].columns) + ROUND and rows <= 2 * len(group[0].rows) + ROUND
        alike = alike and block.full == group[0].full
        if group and (numbers > BUDGET or not alike):
            yield group
            group = []
        group.append(block)
    yield group


def make_group(
    mask: Mask, blocks: Sequence[GatheredBlock], table: Pairs, lead: tuple[int, ...], dtype: torch.dtype
) -> GatheredGroup:
    """Return the blocks as one group, padded to the size of the largest."""
    rows = max(len(block.rows) for block in blocks)
    columns = -(-max(1, *(len(block.columns) for block in blocks)) // ROUND) * ROUND
    slots = torch.cat([torch.arange(len(block.rows)) + place * rows for place, block in enumerate(blocks)])
    gathered = torch.stack([torch.nn.functional.pad(b.columns, (0, columns - len(b.columns))) for b in blocks])
    make_table: Callable[[], Tensor | None]
    if blocks[0].full:
        make_table = partial(_hide_padding, blocks, columns, dtype)
    else:
        make_table = partial(_build_tables, mask, blocks, table, lead, (rows, columns), dtype)
    return GatheredGroup(torch.stack([_repeat_last(b.rows, rows) for b in blocks]), slots, gathered, make_table)


def _build_tables(
    mask: Mask,
    blocks: Sequence[GatheredBlock],
    table: Pairs,
    lead: tuple[int, ...],
    size: tuple[int, int],
    dtype: torch.dtype,
) -> Float[Tensor, "#lead block row column"]:
    """Return the tables of some blocks; −inf also where there is no query or no key."""
    shared = torch.broadcast_shapes(*(part.lead for part in mask.leaves())).numel() == 1
    count = 1 if shared else torch.Size(lead).numel()
    tables = torch.full((count, len(blocks), *size), float("-inf"), dtype=dtype)
    for place, (rows, columns, _) in enumerate(blocks):
        allowed = mask.allows(Pairs(table.queries, table.keys, rows=rows, columns=columns))
        cells = allowed.expand(*(allowed.shape[:-2] if shared else lead), len(rows), len(columns))
        tables[:, place, : len(rows), : len(columns)].masked_fill_(cells.reshape(count, len(rows), len(columns)), 0.0)
    return tables


def _hide_padding(
    blocks: Sequence[GatheredBlock], columns: int, dtype: torch.dtype
) -> Float[Tensor, "1 block 1 column"] | None:
    """Return the tables of blocks whose queries see all of their keys: −inf only where there is no key."""
    counts = [len(block.columns) for block in blocks]
    if min(counts) == columns:
        return None
    hidden = torch.arange(columns) >= torch.tensor(counts)[:, None]
    return torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, float("-inf"))[None, :, None]


def gather_spans(parts: Parts, queries: int, keys: int, size: int) -> list[Span]:
    """Return blocks of at most `size` queries, in order, each with the keys that it may see."""
    found = [seen.nonzero()[:, 0] for seen in _cover_neighbors(parts.mask, queries, keys).keys]
    rows = 1 << (min(size, ROWS).bit_length() - 1)  # a divisor of the size of a block
    spans = []
    for start in range(0, queries, rows):
        columns = found[start // ROWS]
        columns = columns if len(columns) else columns.new_zeros(1)  # a kernel needs at least one key
        spans.append(Span(start, min(queries, start + rows), 0, keys, columns))
    return spans


def count_visible(mask: Mask, queries: int, keys: int) -> int:
    """Return the most keys that a block of queries may see."""
    return max(_cover_neighbors(mask, queries, keys).counts)


def _cover_neighbors(mask: Mask, queries: int, keys: int) -> BlockCover:
    """Return which keys blocks of queries in a row may see."""
    return _cover(mask, queries, keys, torch.arange(queries).split(ROWS))


def _repeat_last(rows: Int[Tensor, " row"], count: int) -> Int[Tensor, " count"]:
    return torch.cat([rows, rows[-1:].expand(count - len(rows))])
