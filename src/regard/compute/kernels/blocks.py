"""Attention in blocks of queries, recomputed in the backward pass: memory stays linear in the length."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch.utils.checkpoint import checkpoint

from regard.algebra.pairs import Span
from regard.algebra.shapes import Float, Tensor


class BlockOutput(NamedTuple):
    """The output of a block of queries, and the log-probability of the keys that were drawn, if any."""

    output: Float[Tensor, "*lead query value"]
    log_prob: Float[Tensor, "*lead query"] | None


BlockFunction = Callable[[Span, Tensor, Tensor, Tensor], BlockOutput]


def run_blocks(
    run: BlockFunction, spans: Sequence[Span], query: Tensor, key: Tensor, value: Tensor, extras: Sequence[Tensor]
) -> BlockOutput:
    """Run every span and join the outputs. `extras` are the other tensors of `run` that gradients flow to."""
    if len(spans) == 1:  # it fits the budget anyway, and may keep what its backward needs
        return run(spans[0], *_slice_inputs(spans[0], query, key, value))
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return _join_outputs([run(span, *_slice_inputs(span, query, key, value)) for span in spans])
    first = run(spans[0], *(part.detach() for part in _slice_inputs(spans[0], query, key, value)))
    if _depends_on_others(first, extras):
        parts = ((span, *_slice_inputs(span, query, key, value)) for span in spans)
        return _join_outputs([checkpoint(run, *part, use_reentrant=False, preserve_rng_state=False) for part in parts])
    first = BlockOutput(*(None if part is None else part.detach() for part in first))  # type: ignore[arg-type]
    if not any(tensor.requires_grad for tensor in (query, key, value, *extras)):
        return _join_outputs([first, *(run(span, *_slice_inputs(span, query, key, value)) for span in spans[1:])])
    output, log_prob = _BlockAttention.apply(run, spans, first, query, key, value, *extras)  # type: ignore[no-untyped-call]
    return BlockOutput(output, log_prob)


def _depends_on_others(read: BlockOutput, extras: Sequence[Tensor]) -> bool:
    """Return whether a gradient flows to tensors that are not among `extras`: those that a function closes over.

    `read` was made from inputs without a gradient, so that whatever its graph leads to belongs to the parts.
    """
    known = {id(tensor) for tensor in extras}
    seen = {tensor.grad_fn for tensor in extras}
    nodes = [tensor.grad_fn for tensor in read if tensor is not None]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in known:
            return True
        nodes += [following for following, _ in node.next_functions]
    return False


def _slice_inputs(span: Span, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows = query[..., span.start : span.stop, :]
    if span.columns is not None:
        return rows, key.index_select(-2, span.columns), value.index_select(-2, span.columns)
    keys = slice(span.first, span.last)
    return rows, key[..., keys, :], value[..., keys, :]


def _join_outputs(reads: Sequence[BlockOutput]) -> BlockOutput:
    if len(reads) == 1:
        return reads[0]
    output = torch.cat([read.output for read in reads], dim=-2)
    drawn = [read.log_prob for read in reads if read.log_prob is not None]
    return BlockOutput(output, torch.cat(drawn, dim=-1) if drawn else None)


class _BlockAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, spans, first, query, key, value, *extras):  # type: ignore[no-untyped-def]
        ctx.run, ctx.spans = run, spans
        ctx.save_for_backward(query, key, value, *extras)
        return tuple(
            _join_outputs([first, *(run(span, *_slice_inputs(span, query, key, value)) for span in spans[1:])])
        )

    @staticmethod
    def backward(ctx, grad_output, grad_log_prob):  # type: ignore[no-untyped-def]
        query, key, value, *extras = ctx.saved_tensors
        needed = ctx.needs_input_grad[3:]
        if torch.is_grad_enabled():  # a second derivative is wanted, with all the memory that it takes
            grads = _compute_differentiable_gradients(ctx, (grad_output, grad_log_prob), needed)  # type: ignore[no-untyped-call]
            return None, None, None, *grads
        totals = [torch.zeros_like(t) if n else None for t, n in zip((query, key, value), needed[:3], strict=True)]
        extra_totals = [torch.zeros_like(t) if n else None for t, n in zip(extras, needed[3:], strict=True)]
        for span in ctx.spans:
            block = [
                t.detach().requires_grad_(n)
                for t, n in zip(_slice_inputs(span, query, key, value), needed, strict=False)
            ]
            grads = _compute_block_gradients(ctx.run, span, block, extras, needed, grad_output, grad_log_prob)
            _accumulate(_slice_totals(span, totals), grads[:3], span.columns)
            _accumulate(extra_totals, grads[3:])
        return None, None, None, *totals, *extra_totals


def _compute_differentiable_gradients(ctx, grads, needed):  # type: ignore[no-untyped-def]
    """Return the gradients as functions of the inputs, so that they can be differentiated again."""
    query, key, value, *extras = ctx.saved_tensors
    # Views of their own: if two inputs are one tensor, each gets its own part of the gradient.
    query, key, value = (tensor.view_as(tensor) for tensor in (query, key, value))
    read = _join_outputs([ctx.run(span, *_slice_inputs(span, query, key, value)) for span in ctx.spans])
    live = [(out, grad) for out, grad in zip(read, grads, strict=True) if out is not None and out.requires_grad]
    inputs = [tensor for tensor, need in zip((query, key, value, *extras), needed, strict=True) if need]
    outs, upstream = [out for out, _ in live], [grad for _, grad in live]
    found = iter(torch.autograd.grad(outs, inputs, upstream, create_graph=True, allow_unused=True))
    return [next(found) if need else None for need in needed]


def _slice_totals(span: Span, totals: Sequence[Tensor | None]) -> list[Tensor | None]:
    keys = slice(span.first, span.last) if span.columns is None else slice(None)
    rows = [slice(span.start, span.stop), keys, keys]
    return [None if total is None else total[..., own, :] for total, own in zip(totals, rows, strict=True)]


def _compute_block_gradients(
    run: BlockFunction,
    span: Span,
    block: Sequence[Tensor],
    extras: Sequence[Tensor],
    needed: Sequence[bool],
    grad_output: Tensor,
    grad_log_prob: Tensor | None,
) -> list[Tensor | None]:
    """Return the gradients of one block, computed anew; None if one is not needed or does not flow."""
    with torch.enable_grad():
        read = run(span, *block)
    outs, grads = [read.output], [grad_output[..., span.start : span.stop, :]]
    if read.log_prob is not None and grad_log_prob is not None:
        outs, grads = [*outs, read.log_prob], [*grads, grad_log_prob[..., span.start : span.stop]]
    live = [(out, grad) for out, grad in zip(outs, grads, strict=True) if out.requires_grad]
    inputs = [tensor for tensor, need in zip((*block, *extras), needed, strict=True) if need]
    if not live:
        return [None] * len(needed)
    found = iter(torch.autograd.grad([out for out, _ in live], inputs, [grad for _, grad in live], allow_unused=True))
    return [next(found) if need else None for need in needed]


def _accumulate(totals: Sequence[Tensor | None], grads: Sequence[Tensor | None], columns: Tensor | None = None) -> None:
    """Add the gradients to the totals; behind the first, which is the queries', only at these columns, if any."""
    for place, (total, grad) in enumerate(zip(totals, grads, strict=True)):
        if total is None or grad is None:
            continue
        if place and columns is not None:
            total.index_add_(-2, columns, grad)
        else:
            total += grad
