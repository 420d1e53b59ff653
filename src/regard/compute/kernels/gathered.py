"""Softmax attention in blocks whose queries and keys are gathered by index: only keys that a block may see are read."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.fused import KernelResult
from regard.compute.kernels.fused_blocks import BlockReader, attend_in_blocks, flatten_lead


class GatheredGroup(NamedTuple):
    """Blocks of one size, which go into one kernel.

    A block that is shorter repeats its last query; `slots` are the places of the queries that count, in the order of
    the flattened blocks.
    """

    rows: Int[Tensor, "block row"]
    slots: Int[Tensor, " slot"]
    columns: Int[Tensor, "block column"]
    make_table: Callable[[], Float[Tensor, "#lead block #row column"] | None]


def gathered_attention(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    groups: Sequence[GatheredGroup],
    *,
    scale: float = 1.0,
) -> KernelResult:
    """Return output and log totals on the CPU. Neither the tables nor the totals get a gradient."""
    width = value.shape[-1]
    lead, tensors = flatten_lead(query, key, value)
    output, total = attend_in_blocks(*tensors, [GatheredBlocks(groups)], scale)
    output = output[..., :width]
    return KernelResult(output.reshape(*lead, *output.shape[-2:]), total.reshape(*lead, total.shape[-1]))


class GatheredBlocks(BlockReader):
    """Blocks `(lead, block, place, dim)` of positions that are named one by one."""

    def __init__(self, groups: Sequence[GatheredGroup]) -> None:
        self.groups = groups

    def read_queries(self, tensor: Float[Tensor, "lead query dim"], group: GatheredGroup) -> Tensor:
        return _gather(tensor, group.rows)

    def read_keys(self, tensor: Float[Tensor, "lead key dim"], group: GatheredGroup) -> Tensor:
        return _gather(tensor, group.columns)

    def join_queries(self, blocks: Sequence[Tensor]) -> Tensor:
        slots = [
            part.flatten(1, 2).index_select(1, group.slots) for part, group in zip(blocks, self.groups, strict=True)
        ]
        places = torch.cat([group.rows.flatten()[group.slots] for group in self.groups]).argsort()
        return torch.cat(slots, 1).index_select(1, places)

    def add_keys(self, total: Float[Tensor, "lead key dim"], blocks: Tensor, group: GatheredGroup) -> None:
        total.index_add_(1, group.columns.flatten(), blocks.flatten(1, 2))

    def zero_repeated(self, blocks: Tensor, group: GatheredGroup) -> Tensor:
        counts = torch.zeros(group.rows.numel(), dtype=blocks.dtype).index_fill_(0, group.slots, 1.0)
        return blocks * counts.view(*group.rows.shape, 1)


def _gather(tensor: Float[Tensor, "lead position dim"], index: Int[Tensor, "block place"]) -> Tensor:
    """Return `(lead, block, place, dim)`."""
    found: Tensor = tensor.index_select(1, index.flatten()).unflatten(1, index.shape)
    return found
