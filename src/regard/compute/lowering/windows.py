"""How a softmax in a sliding window becomes a few calls over overlapping views of the keys."""

from functools import partial
from typing import NamedTuple

import torch

from regard.algebra.masks import Mask, Window
from regard.algebra.masks.composition import Intersection, MaskUnion
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall, Parts
from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.windows import BlockGroup, BlockLayout, SharedKeyTable, window_attention
from regard.compute.lowering.conditions import needs_dense_bias
from regard.compute.lowering.fuse import FusedResult, compute_dot_form
from regard.compute.lowering.spans import LARGEST, SMALLEST

ROUND = 16  # spans are a multiple of this: the lanes of a vector
SHARED = 64  # keys that a union adds to a window, seen by all queries; above, they are gathered
BUDGET = 2**23  # numbers in the tables or in the gradients of one group of blocks: 32 MB in float32


class MaskSpec(NamedTuple):
    """What of a mask does not depend on the block: sizes, and the lead axes of its table."""

    mask: Mask
    queries: int
    keys: int
    lead: tuple[int, ...]
    dtype: torch.dtype


class SharedKeyMask(NamedTuple):
    """Keys that are seen from outside of their window too, and by which queries."""

    columns: Int[Tensor, " shared"]
    mask: Mask


def fuse_window(call: AttentionCall) -> FusedResult | None:
    """Return the output if this is a plain softmax in a window on the CPU; otherwise None."""
    mask, more = call.parts.mask, None
    if call.dtype.itemsize > 2:  # in half precision each part of a union would be rounded, and then their sum
        mask, more = split_shared_keys(mask, call.queries, call.keys)
    window = find_window(mask)
    inputs = call.query, call.key, call.value
    readable = tensor_memory.is_readable(*inputs) and all(tensor.is_cpu and tensor.numel() for tensor in inputs)
    if window is None or not _is_plain_softmax(call.parts, call.keys) or not readable:
        return None
    raw = compute_dot_form(call.parts, call.query, call.key, call.pairs())[0]
    form = raw.fold_offsets(keep_row=False).make_scale_positive()
    lead = torch.broadcast_shapes(form.query.shape[:-2], form.key.shape[:-2], call.value.shape[:-2])
    sight = MaskSpec(mask, call.queries, call.keys, lead, form.query.dtype)
    cut = cut_blocks(window, call.queries, call.keys)
    groups = group_blocks(sight, window, cut, max(form.query.shape[-1], call.value.shape[-1]))
    scale, shared = float(form.scale), None if more is None else _build_shared_table(sight, more)
    output, total = window_attention(form.query, form.key, call.value, cut, groups, scale=scale, shared=shared)
    return FusedResult(output, form, total, raw)


def split_shared_keys(mask: Mask, queries: int, keys: int) -> tuple[Mask, SharedKeyMask | None]:
    """Return a window, and what a union with it adds, if that is few keys; otherwise the mask itself, and None."""
    if type(mask) is not MaskUnion or queries > keys:  # else the first queries are outside of the keys
        return mask, None
    windows = [part for part in mask.parts if type(part) is Window]
    others = [part for part in mask.parts if type(part) is not Window]
    readable = all(tensor.is_cpu and tensor_memory.is_readable(tensor) for tensor in mask.tensors())
    if len(windows) != 1 or not readable or tensor_memory.is_traced() or tensor_memory.is_intercepted():
        return mask, None
    seen = [part.find_visible_keys(keys) for part in others]
    if any(visible is None for visible in seen):
        return mask, None
    flat = torch.stack([visible.reshape(-1, keys).any(0) for visible in seen if visible is not None]).any(0)
    columns = flat.nonzero()[:, 0]
    if not 0 < len(columns) <= max(SHARED, windows[0].width // 4):
        return mask, None
    return windows[0], SharedKeyMask(columns, MaskUnion(tuple(others)) & ~windows[0])


def _build_shared_table(sight: MaskSpec, more: SharedKeyMask) -> SharedKeyTable:
    """Return who sees which of the shared keys without its window."""
    pairs = Pairs(sight.queries, sight.keys, columns=more.columns)
    allowed = more.mask.allows(pairs)
    lead = () if allowed.shape[:-2].numel() == 1 else sight.lead
    cells = allowed.expand(*lead, *allowed.shape[-2:]) if lead else allowed
    cells = cells.reshape(-1, *cells.shape[-2:]).expand(-1, sight.queries, len(more.columns))
    return SharedKeyTable(more.columns, torch.zeros(cells.shape, dtype=sight.dtype).masked_fill_(~cells, -torch.inf))


def find_window(mask: Mask) -> Window | None:
    """Return the smallest window that holds all that the mask allows; None if its types do not show one."""
    if type(mask) is Window:
        return mask
    if type(mask) is not Intersection:
        return None
    found = [window for window in map(find_window, mask.parts) if window is not None]
    if not found:
        return None
    after = 0 if mask.causal else min(window.after for window in found)
    return Window(min(window.before for window in found), after)


def cut_blocks(window: Window, queries: int, keys: int) -> BlockLayout:
    """Return blocks of a quarter as many queries as the window is wide: few hidden keys are read."""
    # There are never more keys on either side.
    before, after = min(window.before, keys - 1), min(window.after, queries - 1)
    rows = min(queries, LARGEST, max(SMALLEST, (before + after + 1) // 4))
    span = -(-(rows + before + after) // ROUND) * ROUND
    return BlockLayout(rows, -(-queries // rows), keys - queries - before, span)


def group_blocks(sight: MaskSpec, window: Window, cut: BlockLayout, width: int) -> list[BlockGroup]:
    """Return groups of blocks. The inner blocks of a bare window share one table."""
    lead = max(1, torch.Size(sight.lead).numel())
    shared = max(1, BUDGET // (lead * cut.span * 2 * width))
    own = max(1, min(shared, BUDGET // (lead * cut.span * cut.rows)))
    start, stop = _find_inner_blocks(window, cut, sight) if type(sight.mask) is Window else (0, 0)
    groups = [BlockGroup(*ends, partial(_build_tables, sight, cut, *ends)) for ends in _split_range(0, start, own)]
    if stop > start:
        table = _build_band(window, cut, sight)
        groups += [BlockGroup(*ends, lambda: table) for ends in _split_range(start, stop, shared)]
    return groups + [
        BlockGroup(*ends, partial(_build_tables, sight, cut, *ends)) for ends in _split_range(stop, cut.blocks, own)
    ]


def _is_plain_softmax(parts: Parts, keys: int) -> bool:
    return parts.normalizer.form == "softmax" and not needs_dense_bias(parts, keys)


def _split_range(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    return [(first, min(stop, first + size)) for first in range(start, stop, size)]


def _find_inner_blocks(window: Window, cut: BlockLayout, sight: MaskSpec) -> tuple[int, int]:
    """Return the first and last inner block: all its queries exist, and all keys that they may see."""
    start = max(0, -(cut.first // cut.rows))
    after = min(window.after, sight.queries - 1)
    stop = min(sight.queries // cut.rows, (sight.queries - after) // cut.rows)
    return (start, stop) if stop > start else (0, 0)


def _build_band(window: Window, cut: BlockLayout, sight: MaskSpec) -> Float[Tensor, "1 1 row span"]:
    """Return the table that all inner blocks share."""
    width = min(window.before, sight.keys - 1) + min(window.after, sight.queries - 1)
    ahead = torch.arange(cut.span)[None, :] - torch.arange(cut.rows)[:, None]
    return torch.zeros(1, 1, cut.rows, cut.span, dtype=sight.dtype).masked_fill_(
        (ahead < 0) | (ahead > width), float("-inf")
    )


def _build_tables(sight: MaskSpec, cut: BlockLayout, start: int, stop: int) -> Float[Tensor, "block #lead row span"]:
    """Return the tables of some blocks; −inf also where there is no query or no key."""
    found = [_find_allowed(sight, cut, block) for block in range(start, stop)]
    shared = all(allowed.shape[:-2].numel() == 1 for allowed, _ in found)
    lead = () if shared else sight.lead
    count = torch.Size(lead).numel()
    tables = torch.full((stop - start, count, cut.rows, cut.span), float("-inf"), dtype=sight.dtype)
    for table, (allowed, first) in zip(tables, found, strict=True):
        rows, columns = allowed.shape[-2:]
        cells = allowed if shared else allowed.expand(*lead, rows, columns)
        table[:, :rows, first : first + columns].masked_fill_(cells.reshape(count, rows, columns), 0.0)
    return tables


def _find_allowed(sight: MaskSpec, cut: BlockLayout, block: int) -> tuple[Tensor, int]:
    """Return what the mask allows of one block's existing pairs, and the position of the first key in the span."""
    begin = cut.first + block * cut.rows
    rows = block * cut.rows, min(sight.queries, (block + 1) * cut.rows)
    first = min(sight.keys, max(0, begin))
    columns = first, max(first, min(sight.keys, begin + cut.span))
    if columns[0] == columns[1]:
        return torch.zeros(1, 0, dtype=torch.bool), 0
    allowed = sight.mask.allows(Pairs(sight.queries, sight.keys, rows=rows, columns=columns))
    return allowed.expand(*allowed.shape[:-2], rows[1] - rows[0], columns[1] - columns[0]), first - begin
