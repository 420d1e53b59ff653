"""Softmax attention in blocks whose queries and keys are gathered by index: only keys that a block may see are read."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.flash import (
    explicit_attention,
    explicit_gradients,
    flash_attention,
    flash_attention_backward,
)
from regard.compute.kernels.fused import KernelResult, _pad_to_equal_widths


class GatheredGroup(NamedTuple):
    """Blocks of one size, which go into one kernel.

    A block that is shorter repeats its last query; `slots` are the places of the queries that count, in the order of
    the flattened blocks. `make_table` writes out what is added to the scores, `(lead | 1, block, row, column)`, −inf
    where a pair may not attend. It is asked for twice, by forward and backward, so that only one need be in memory.
    """

    rows: Int[Tensor, "block row"]
    slots: Int[Tensor, " slot"]
    columns: Int[Tensor, "block column"]
    make_table: Callable[[], Float[Tensor, "#lead block row column"]]


def gathered_attention(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    groups: Sequence[GatheredGroup],
    *,
    scale: float = 1.0,
) -> KernelResult:
    """Return output and log totals on the CPU. Neither the tables nor the totals get a gradient."""
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    width = value.shape[-1]
    query, key, value = (
        tensor.expand(*lead, *tensor.shape[-2:]).reshape(-1, *tensor.shape[-2:]) for tensor in (query, key, value)
    )
    query, key, value = _pad_to_equal_widths(query, key, value)
    if torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad):
        output, total = _GatheredAttention.apply(query, key, value, groups, scale)  # type: ignore[no-untyped-call]
    else:
        output, total = _forward(query, key, value, groups, scale)
    output = output[..., :width]
    return KernelResult(output.reshape(*lead, *output.shape[-2:]), total.reshape(*lead, total.shape[-1]))


def _gather(tensor: Float[Tensor, "lead position dim"], index: Int[Tensor, "block place"]) -> Tensor:
    """Return `(lead, block, place, dim)`."""
    found: Tensor = tensor.index_select(1, index.flatten()).unflatten(1, index.shape)
    return found


def _find_places(groups: Sequence[GatheredGroup]) -> Int[Tensor, " query"]:
    """Return where each query is among the slots of all groups."""
    return torch.cat([group.rows.flatten()[group.slots] for group in groups]).argsort()


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    groups: Sequence[GatheredGroup],
    scale: float,
    kernel: Callable[..., tuple[Tensor, Tensor]] = flash_attention,
) -> tuple[Tensor, Tensor]:
    outputs, totals = [], []
    for group in groups:
        own = _gather(query, group.rows), _gather(key, group.columns), _gather(value, group.columns)
        output, total = kernel(*own, bias=group.make_table(), scale=scale)
        outputs.append(output.flatten(1, 2).index_select(1, group.slots))
        totals.append(total.flatten(1, 2).index_select(1, group.slots))
    places = _find_places(groups)
    return torch.cat(outputs, 1).index_select(1, places), torch.cat(totals, 1).index_select(1, places)


class _GatheredAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, groups, scale):  # type: ignore[no-untyped-def]
        output, total = _forward(query, key, value, groups, scale)
        ctx.groups, ctx.scale = groups, scale
        ctx.save_for_backward(query, key, value, output, total)
        ctx.mark_non_differentiable(total)
        return output, total

    @staticmethod
    def backward(ctx, grad_output, _grad_total):  # type: ignore[no-untyped-def]
        query, key, value, output, total = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            again = partial(_forward, groups=ctx.groups, scale=ctx.scale, kernel=explicit_attention)
            return *explicit_gradients(again, (query, key, value), (grad_output, None)), None, None
        grads = [torch.zeros_like(tensor) for tensor in (query, key, value)]
        for group in ctx.groups:
            rows = [_gather(tensor, group.rows) for tensor in (grad_output, query, output, total[..., None])]
            # A query that a short block repeats has its gradient once.
            counts = torch.zeros(group.rows.numel(), dtype=query.dtype).index_fill_(0, group.slots, 1.0)
            gradient = rows[0] * counts.view(*group.rows.shape, 1)
            own = rows[1], _gather(key, group.columns), _gather(value, group.columns), rows[2], rows[3][..., 0]
            found = flash_attention_backward(gradient, *own, bias=group.make_table(), scale=ctx.scale)
            for grad, part, index in zip(grads, found, (group.rows, group.columns, group.columns), strict=True):
                grad.index_add_(1, index.flatten(), part.flatten(1, 2))
        return *grads, None, None
