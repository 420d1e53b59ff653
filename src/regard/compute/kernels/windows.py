"""Softmax attention in a sliding window: blocks of queries over overlapping views of the keys, many in one kernel."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.compute.kernels.fused import KernelResult
from regard.compute.kernels.fused_blocks import BlockReader, attend_in_blocks, flatten_lead


class BlockLayout(NamedTuple):
    """Blocks of `rows` queries. Block b reads the `span` keys from `first + b · rows` on; not all need be there.

    >>> BlockLayout(rows=2, blocks=3, first=-1, span=3).padded
    8
    """

    rows: int
    blocks: int
    first: int
    span: int

    @property
    def pieces(self) -> int:
        """How many runs of `rows` keys a span touches."""
        return -(-self.span // self.rows)

    @property
    def padded(self) -> int:
        """How many keys there are with the zeros at both ends, in whole runs of `rows`."""
        return (self.blocks - 1 + self.pieces) * self.rows


class BlockGroup(NamedTuple):
    """The blocks `start … stop − 1`, which go into one kernel, and how to write out what is added to their scores.

    The table is `(blocks | 1, lead | 1, rows, span)`, −inf where a pair may not attend.
    """

    start: int
    stop: int
    make_table: Callable[[], Float[Tensor, "#block #lead row span"]]


class SharedKeyTable(NamedTuple):
    """Keys outside of the window that many queries see, and the table `(lead | 1, query, key)` of who sees which."""

    columns: Int[Tensor, " shared"]
    table: Float[Tensor, "#lead query shared"]


def window_attention(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    cut: BlockLayout,
    groups: Sequence[BlockGroup],
    *,
    scale: float = 1.0,
    shared: SharedKeyTable | None = None,
) -> KernelResult:
    """Return output and log totals on the CPU. Neither the tables nor the totals get a gradient."""
    queries, width = query.shape[-2], value.shape[-1]
    lead, (query, key, value) = flatten_lead(query, key, value)
    query = _pad_rows(query, 0, cut.rows * cut.blocks - queries)
    readers: list[BlockReader] = [WindowBlocks(cut, groups)]
    if shared is not None:
        table = F.pad(shared.table, (0, 0, 0, query.shape[-2] - queries), value=float("-inf"))
        readers.append(SharedKeys(cut.padded, table))
    key, value = (_lay_out_keys(tensor, cut, shared) for tensor in (key, value))
    output, total = attend_in_blocks(query, key, value, readers, scale)
    output, total = output[:, :queries, :width], total[:, :queries]
    return KernelResult(output.reshape(*lead, *output.shape[-2:]), total.reshape(*lead, queries))


def _lay_out_keys(tensor: Tensor, cut: BlockLayout, shared: SharedKeyTable | None) -> Tensor:
    """Return the keys of all windows, with zeros at both ends, and behind them the shared ones in whole runs."""
    windows = _pad_rows(tensor, -cut.first, cut.padded + cut.first - tensor.shape[-2])
    if shared is None:
        return windows
    found = tensor.index_select(-2, shared.columns)
    return torch.cat([windows, _pad_rows(found, 0, -len(shared.columns) % cut.rows)], -2)


def _pad_rows(tensor: Tensor, before: int, after: int) -> Tensor:
    """Return the tensor with zeros at both ends of the second last axis; a negative number cuts off."""
    return (F.pad(tensor, (0, 0, before, after)) if before or after else tensor).contiguous()


class WindowBlocks(BlockReader):
    """Blocks `(block, lead, row, dim)` of queries in a row, over overlapping views of the keys.

    Blocks come first, because the kernel then writes each one in one piece.
    """

    def __init__(self, cut: BlockLayout, groups: Sequence[BlockGroup]) -> None:
        self.cut, self.groups = cut, groups

    def read_queries(self, tensor: Float[Tensor, "lead query dim"], group: BlockGroup) -> Tensor:
        blocks: Tensor = tensor.unflatten(-2, (self.cut.blocks, self.cut.rows))
        return blocks.transpose(0, 1)[group.start : group.stop]

    def read_keys(self, tensor: Float[Tensor, "lead key dim"], group: BlockGroup) -> Tensor:
        spans: Tensor = tensor.unfold(-2, self.cut.span, self.cut.rows)[:, group.start : group.stop]
        return spans.transpose(0, 1).transpose(-1, -2)

    def join_queries(self, blocks: Sequence[Tensor]) -> Tensor:
        whole = torch.cat(list(blocks)) if len(blocks) > 1 else blocks[0]
        return whole.transpose(0, 1).flatten(1, 2)

    def add_keys(self, total: Float[Tensor, "lead key dim"], blocks: Tensor, group: BlockGroup) -> None:
        runs = total.unflatten(-2, (-1, self.cut.rows))
        for piece in range(self.cut.pieces):  # within one piece all blocks add to different keys
            part = blocks[:, :, piece * self.cut.rows : (piece + 1) * self.cut.rows].transpose(0, 1)
            runs[:, group.start + piece : group.stop + piece, : part.shape[-2]] += part


class SharedKeys(BlockReader):
    """All queries as one block over the same few keys, which begin at `first`."""

    def __init__(self, first: int, table: Float[Tensor, "#lead query shared"]) -> None:
        self.places, self.table = slice(first, first + table.shape[-1]), table[:, None]
        self.groups = [self]

    def make_table(self) -> Float[Tensor, "#lead 1 query shared"]:
        """Return what is added to the scores."""
        return self.table

    def find_empty(self) -> Bool[Tensor, "#lead query"]:
        return (self.table[:, 0] == float("-inf")).all(-1)

    def read_queries(self, tensor: Float[Tensor, "lead query dim"], group: object) -> Tensor:
        return tensor[:, None]

    def read_keys(self, tensor: Float[Tensor, "lead key dim"], group: object) -> Tensor:
        return tensor[:, None, self.places]

    def join_queries(self, blocks: Sequence[Tensor]) -> Tensor:
        return blocks[0][:, 0]

    def add_keys(self, total: Float[Tensor, "lead key dim"], blocks: Tensor, group: object) -> None:
        total[:, self.places] += blocks[:, 0]
