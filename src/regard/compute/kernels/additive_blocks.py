"""The additive score and its gradients in plain torch: blocks that stay in the cache, and nothing stored between them.

Here tanh is taken of each sum, as the definition says. In torch a division costs as much as a tanh, and the factored
form of the compiled kernel needs one for each pair; what makes this several times faster than eager is the cache.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch

from regard.algebra.shapes import Tensor

CPU_BLOCK = 2**18  # numbers in a temporary: a megabyte of float32, which a core keeps in its second cache
WIDE_BLOCK = 2**24  # for devices that need much work at once


AT_ONCE = 2**20  # numbers up to which blocks save nothing


def score_at_once(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """Return the scores by the definition, for autograd to differentiate: the fastest way if all of it fits a cache."""
    hidden = torch.tanh(query[..., :, None, :] + key[..., None, :, :])
    return (hidden * weight[..., None, None, :]).sum(-1)


class QueryBlock(NamedTuple):
    """Some queries of some batch entries, with all their keys."""

    batch: slice
    queries: slice


class FlatInputs(NamedTuple):
    """The three inputs with one leading axis."""

    query: Tensor
    key: Tensor
    weight: Tensor


def compute_scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """Return the scores, in the dtype of the inputs."""
    lead, flat = _flatten(query, key, weight)
    result = flat.query.new_empty(flat.query.shape[0], query.shape[-2], key.shape[-2])
    memory = flat.query.new_empty(_compute_block_size(flat))
    for block in _iterate_blocks(flat):
        hidden = _compute_hidden(flat, block, memory)
        torch.sum(hidden.mul_(flat.weight[block.batch, None, None]), dim=-1, out=result[block])
    return result.view(*lead, query.shape[-2], key.shape[-2])


def compute_gradients(upstream: Tensor, query: Tensor, key: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and weight, in their shapes, from `upstream`, that of the scores."""
    lead, flat = _flatten(query, key, weight)
    upstream = upstream.reshape(flat.query.shape[0], query.shape[-2], key.shape[-2])
    to_query, to_key, to_weight = (torch.zeros_like(part, memory_format=torch.contiguous_format) for part in flat)
    memory, more = (flat.query.new_empty(_compute_block_size(flat)) for _ in range(2))
    one = flat.query.new_ones(())
    for block in _iterate_blocks(flat):
        incoming = upstream[block][..., None]
        hidden = _compute_hidden(flat, block, memory)
        weighed = torch.mul(hidden, incoming, out=_view(more, hidden.shape))
        to_weight[block.batch] += weighed.sum((1, 2))
        slope = torch.addcmul(one, hidden, hidden, value=-1, out=hidden).mul_(incoming)
        to_query[block] = slope.sum(2)
        to_key[block.batch] += slope.sum(1)
    to_query.mul_(flat.weight[:, None])
    to_key.mul_(flat.weight[:, None])
    return (
        to_query.view(*lead, *query.shape[-2:]).sum_to_size(query.shape),
        to_key.view(*lead, *key.shape[-2:]).sum_to_size(key.shape),
        to_weight.view(*lead, weight.shape[-1]).sum_to_size(weight.shape),
    )


def _flatten(query: Tensor, key: Tensor, weight: Tensor) -> tuple[torch.Size, FlatInputs]:
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], weight.shape[:-1])
    count = torch.Size(lead).numel()
    return lead, FlatInputs(
        query.expand(*lead, -1, -1).reshape(count, *query.shape[-2:]),
        key.expand(*lead, -1, -1).reshape(count, *key.shape[-2:]),
        weight.expand(*lead, -1).reshape(count, weight.shape[-1]),
    )


def _choose_block_shape(flat: FlatInputs) -> tuple[int, int]:
    """Return how many batch entries and queries a block has: whole entries if they fit, else some queries of one."""
    _, queries, hidden = flat.query.shape
    budget = CPU_BLOCK if flat.query.device.type == "cpu" else WIDE_BLOCK
    per_query = max(1, flat.key.shape[1] * hidden)
    return max(1, budget // max(1, queries * per_query)), max(1, min(queries, budget // per_query))


def _compute_block_size(flat: FlatInputs) -> int:
    entries, rows = _choose_block_shape(flat)
    return min(entries, flat.query.shape[0]) * rows * flat.key.shape[1] * flat.query.shape[2]


def _iterate_blocks(flat: FlatInputs) -> Iterator[QueryBlock]:
    entries, rows = _choose_block_shape(flat)
    for first in range(0, flat.query.shape[0], entries):
        for start in range(0, flat.query.shape[1], rows):
            yield QueryBlock(slice(first, first + entries), slice(start, start + rows))


def _compute_hidden(flat: FlatInputs, block: QueryBlock, memory: Tensor) -> Tensor:
    """Return tanh of the sums of a block, in `memory`: allocating anew for each block costs more than tanh."""
    query, key = flat.query[block], flat.key[block.batch]
    shape = (query.shape[0], query.shape[1], key.shape[1], query.shape[2])
    return torch.add(query[:, :, None], key[:, None], out=_view(memory, shape)).tanh_()


def _view(memory: Tensor, shape: tuple[int, ...]) -> Tensor:
    return memory[: torch.Size(shape).numel()].view(shape)
