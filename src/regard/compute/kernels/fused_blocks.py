"""Softmax attention in blocks of queries: the fused kernel for groups of blocks, forward and backward.

Which queries and keys a block reads is a `BlockReader`: a sliding window (`windows.py`), or any keys (`gathered.py`).
Several readers see different keys of the same queries; their softmaxes are joined by their totals.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from regard.algebra.shapes import Bool, Float, Tensor
from regard.compute.kernels.flash import (
    explicit_attention,
    explicit_gradients,
    flash_attention,
    flash_attention_backward,
)
from regard.compute.kernels.fused import _pad_to_equal_widths

Kernel = Callable[..., tuple[Tensor, Tensor]]


class BlockReader(ABC):
    """How tensors of one lead axis, `(lead, position, width)`, are cut into groups of blocks and put together again.

    Every group has a `make_table`, which writes out what is added to its scores, −inf where a pair may not attend. It
    is called twice, by forward and backward, so that only one table need be in memory.
    """

    groups: Sequence[Any]

    @abstractmethod
    def read_queries(self, tensor: Float[Tensor, "lead query dim"], group: Any) -> Tensor:
        """Return the queries of the blocks of a group, or other rows that belong to them."""

    @abstractmethod
    def read_keys(self, tensor: Float[Tensor, "lead key dim"], group: Any) -> Tensor:
        """Return the keys, or the values, that each block of a group reads."""

    @abstractmethod
    def join_queries(self, blocks: Sequence[Tensor]) -> Tensor:
        """Return the rows of all groups as `(lead, query, …)`."""

    @abstractmethod
    def add_keys(self, total: Float[Tensor, "lead key dim"], blocks: Tensor, group: Any) -> None:
        """Add what every block of a group has for its keys to the total."""

    def find_empty(self) -> Bool[Tensor, "#lead query"]:
        """Return the queries for which this reader has no key. Asked of all readers but the first."""
        raise NotImplementedError

    def zero_repeated(self, blocks: Tensor, group: Any) -> Tensor:
        """Return the rows of a group with zeros for queries that a block reads only to be full; here there are none."""
        return blocks


def flatten_lead(query: Tensor, key: Tensor, value: Tensor) -> tuple[torch.Size, tuple[Tensor, Tensor, Tensor]]:
    """Return the broadcast lead axes, and the three tensors with one lead axis and one width."""
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (
        tensor.expand(*lead, *tensor.shape[-2:]).reshape(-1, *tensor.shape[-2:]) for tensor in (query, key, value)
    )
    return lead, _pad_to_equal_widths(query, key, value)


def attend_in_blocks(
    query: Tensor, key: Tensor, value: Tensor, readers: Sequence[BlockReader], scale: float
) -> tuple[Float[Tensor, "lead query dim"], Float[Tensor, "lead query"]]:
    """Return output and log totals on the CPU. Neither the tables nor the totals get a gradient.

    No two readers may see the same pair, and the first has a key for every query if there are several.
    """
    if torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad):
        output, total = _FusedBlocks.apply(query, key, value, readers, scale)  # type: ignore[no-untyped-call]
        return output, total
    return _forward(query, key, value, readers, scale, flash_attention)


def _forward(
    query: Tensor, key: Tensor, value: Tensor, readers: Sequence[BlockReader], scale: float, kernel: Kernel
) -> tuple[Tensor, Tensor]:
    output, total = _read(query, key, value, readers[0], scale, kernel)
    for reader in readers[1:]:
        more, more_total = _read(query, key, value, reader, scale, kernel)
        empty = reader.find_empty()
        more_total = more_total.masked_fill(empty, 0.0)  # not −inf, which has no second derivative
        share = (total - more_total).sigmoid().masked_fill(empty, 1.0)[..., None]
        rest = (more_total - total).sigmoid().masked_fill(empty, 0.0)[..., None]
        output = output * share + more * rest
        total = torch.where(empty, total, torch.logaddexp(total, more_total))
    return output, total


def _read(
    query: Tensor, key: Tensor, value: Tensor, reader: BlockReader, scale: float, kernel: Kernel
) -> tuple[Tensor, Tensor]:
    """Return output and log totals over the keys of one reader."""
    outputs, totals = [], []
    for group in reader.groups:
        own = reader.read_queries(query, group), reader.read_keys(key, group), reader.read_keys(value, group)
        output, total = kernel(*own, bias=group.make_table(), scale=scale)
        outputs.append(output)
        totals.append(total)
    return reader.join_queries(outputs), reader.join_queries(totals)


class _FusedBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, readers, scale):  # type: ignore[no-untyped-def]
        output, total = _forward(query, key, value, readers, scale, flash_attention)
        ctx.readers, ctx.scale = readers, scale
        ctx.save_for_backward(query, key, value, output, total)
        ctx.mark_non_differentiable(total)
        return output, total

    @staticmethod
    def backward(ctx, grad_output, _grad_total):  # type: ignore[no-untyped-def]
        query, key, value, output, total = ctx.saved_tensors
        grad_output = grad_output.contiguous()
        if torch.is_grad_enabled():  # a second derivative is wanted
            again = partial(_forward, readers=ctx.readers, scale=ctx.scale, kernel=explicit_attention)
            return *explicit_gradients(again, (query, key, value), (grad_output, None)), None, None
        grad_query, grad_key, grad_value = None, torch.zeros_like(key), torch.zeros_like(value)
        for reader in ctx.readers:
            parts = []
            for group in reader.groups:
                rows = [reader.read_queries(tensor, group) for tensor in (grad_output, query, output, total[..., None])]
                own = rows[1], reader.read_keys(key, group), reader.read_keys(value, group), rows[2], rows[3][..., 0]
                gradient = reader.zero_repeated(rows[0], group)
                grads = flash_attention_backward(gradient, *own, bias=group.make_table(), scale=ctx.scale)
                parts.append(grads[0])
                reader.add_keys(grad_key, grads[1], group)
                reader.add_keys(grad_value, grads[2], group)
            joined = reader.join_queries(parts)
            grad_query = joined if grad_query is None else grad_query + joined
        return grad_query, grad_key, grad_value, None, None
