"""Softmax attention in a sliding window: blocks of queries over overlapping views of the keys, many in one kernel."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.flash import (
    explicit_attention,
    explicit_gradients,
    flash_attention,
    flash_attention_backward,
)
from regard.compute.kernels.fused import KernelResult, _pad_to_equal_widths


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

    The table is `(blocks | 1, lead | 1, rows, span)`, −inf where a pair may not attend. It is asked for twice, by
    forward and backward, so that no more than one need be in memory.
    """

    start: int
    stop: int
    make_table: Callable[[], Float[Tensor, "#block #lead row span"]]


def window_attention(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    cut: BlockLayout,
    groups: Sequence[BlockGroup],
    *,
    scale: float = 1.0,
) -> KernelResult:
    """Return output and log totals on the CPU. Neither the tables nor the totals get a gradient."""
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    queries, width = query.shape[-2], value.shape[-1]
    query, key, value = (
        tensor.expand(*lead, *tensor.shape[-2:]).reshape(-1, *tensor.shape[-2:]) for tensor in (query, key, value)
    )
    query, key, value = _pad_to_equal_widths(query, key, value)
    before, after = -cut.first, cut.padded + cut.first - key.shape[-2]
    key, value = _pad_rows(key, before, after), _pad_rows(value, before, after)
    query = _pad_rows(query, 0, cut.rows * cut.blocks - queries)
    if torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad):
        output, total = _WindowAttention.apply(query, key, value, cut, groups, scale)  # type: ignore[no-untyped-call]
    else:
        output, total = _forward(query, key, value, cut, groups, scale)
    output, total = output[:, :queries, :width], total[:, :queries]
    return KernelResult(output.reshape(*lead, *output.shape[-2:]), total.reshape(*lead, queries))


def _pad_rows(tensor: Tensor, before: int, after: int) -> Tensor:
    """Return the tensor with zeros at both ends of the second last axis; a negative number cuts off."""
    return (F.pad(tensor, (0, 0, before, after)) if before or after else tensor).contiguous()


def _view_blocks(
    tensor: Float[Tensor, "lead query dim"], cut: BlockLayout, group: BlockGroup
) -> Float[Tensor, "block lead row dim"]:
    """Return a view of the queries of a group. Blocks come first: the kernel then writes each one in one piece."""
    blocks: Tensor = tensor.unflatten(-2, (cut.blocks, cut.rows))
    return blocks.transpose(0, 1)[group.start : group.stop]


def _view_spans(
    tensor: Float[Tensor, "lead key dim"], cut: BlockLayout, group: BlockGroup
) -> Float[Tensor, "block lead span dim"]:
    """Return a view, in which blocks overlap, of the keys that each block of a group reads."""
    spans: Tensor = tensor.unfold(-2, cut.span, cut.rows)[:, group.start : group.stop]
    return spans.transpose(0, 1).transpose(-1, -2)


def _join_blocks(blocks: Sequence[Tensor]) -> Tensor:
    """Return `(block, lead, row, …)` of all groups as `(lead, query, …)`."""
    whole = torch.cat(list(blocks)) if len(blocks) > 1 else blocks[0]
    return whole.transpose(0, 1).flatten(1, 2)


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cut: BlockLayout,
    groups: Sequence[BlockGroup],
    scale: float,
    kernel: Callable[..., tuple[Tensor, Tensor]] = flash_attention,
) -> tuple[Tensor, Tensor]:
    outputs, totals = [], []
    for group in groups:
        own = _view_blocks(query, cut, group), _view_spans(key, cut, group), _view_spans(value, cut, group)
        output, total = kernel(*own, bias=group.make_table(), scale=scale)
        outputs.append(output)
        totals.append(total)
    return _join_blocks(outputs), _join_blocks(totals)


class _WindowAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, cut, groups, scale):  # type: ignore[no-untyped-def]
        output, total = _forward(query, key, value, cut, groups, scale)
        ctx.cut, ctx.groups, ctx.scale = cut, groups, scale
        ctx.save_for_backward(query, key, value, output, total)
        ctx.mark_non_differentiable(total)
        return output, total

    @staticmethod
    def backward(ctx, grad_output, _grad_total):  # type: ignore[no-untyped-def]
        query, key, value, output, total = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            again = partial(_forward, cut=ctx.cut, groups=ctx.groups, scale=ctx.scale, kernel=explicit_attention)
            return *explicit_gradients(again, (query, key, value), (grad_output, None)), None, None, None
        cut, grad_output = ctx.cut, grad_output.contiguous()
        grad_queries, grad_key, grad_value = [], torch.zeros_like(key), torch.zeros_like(value)
        for group in ctx.groups:
            rows, out, grad = (_view_blocks(tensor, cut, group) for tensor in (query, output, grad_output))
            own = rows, _view_spans(key, cut, group), _view_spans(value, cut, group), out
            sums = _view_blocks(total[..., None], cut, group)[..., 0]
            grads = flash_attention_backward(grad, *own, sums, bias=group.make_table(), scale=ctx.scale)
            grad_queries.append(grads[0])
            _add_spans(grad_key, grads[1], cut, group)
            _add_spans(grad_value, grads[2], cut, group)
        return _join_blocks(grad_queries), grad_key, grad_value, None, None, None


def _add_spans(total: Float[Tensor, "lead key dim"], spans: Tensor, cut: BlockLayout, group: BlockGroup) -> None:
    """Add what every block has for its keys, piece by piece: within one piece all blocks add to different keys."""
    runs = total.unflatten(-2, (-1, cut.rows))
    for piece in range(cut.pieces):
        part = spans[:, :, piece * cut.rows : (piece + 1) * cut.rows].transpose(0, 1)
        runs[:, group.start + piece : group.stop + piece, : part.shape[-2]] += part
