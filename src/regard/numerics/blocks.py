"""Attention in blocks of queries, recomputed in the backward pass: memory stays linear in the length."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from regard.shapes import Float, Tensor

BLOCK = 2**22  # numbers in a table that need not be cut: 16 MB in float32
PIECE = 2**21  # numbers in a block of one that must be: several such tables live at a time


class Span(NamedTuple):
    """The queries `start … stop − 1` and the keys `first … last − 1` that they may see."""

    start: int
    stop: int
    first: int
    last: int


class Read(NamedTuple):
    """What a block gives: the output of its queries, and the log-probability of their picks where they were drawn."""

    output: Float[Tensor, "*lead query value"]
    log_prob: Float[Tensor, "*lead query"] | None


Run = Callable[[Span, Tensor, Tensor, Tensor], Read]


def rows_per_block(per_row: int, queries: int, *, budget: int = BLOCK) -> int:
    """How many queries fit a block, where each needs a table row of `per_row` numbers: all of them, or few.

    >>> rows_per_block(2**18, 16), rows_per_block(2**18, 17)
    (16, 8)
    """
    if per_row * queries <= budget:
        return queries
    return max(1, min(budget, PIECE) // max(1, per_row))


def blocked(
    run: Run, spans: Sequence[Span], query: Tensor, key: Tensor, value: Tensor, extras: Sequence[Tensor]
) -> Read:
    """`run` over every span, put together. `extras` are the other tensors that `run` reads and gradients flow to."""
    # A single block fits the budget anyway: it may keep what its backward needs.
    if len(spans) == 1 or torch.compiler.is_compiling() or not _wants_grad(query, key, value, *extras):
        return _joined([run(span, *_parts(span, query, key, value)) for span in spans])
    output, log_prob = _Blocked.apply(run, spans, query, key, value, *extras)  # type: ignore[no-untyped-call]
    return Read(output, log_prob)


def _wants_grad(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _parts(span: Span, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    keys = slice(span.first, span.last)
    return query[..., span.start : span.stop, :], key[..., keys, :], value[..., keys, :]


def _joined(reads: Sequence[Read]) -> Read:
    if len(reads) == 1:
        return reads[0]
    output = torch.cat([read.output for read in reads], dim=-2)
    drawn = [read.log_prob for read in reads if read.log_prob is not None]
    return Read(output, torch.cat(drawn, dim=-1) if drawn else None)


class _Blocked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, spans, query, key, value, *extras):  # type: ignore[no-untyped-def]
        ctx.run, ctx.spans = run, spans
        ctx.save_for_backward(query, key, value, *extras)
        return tuple(_joined([run(span, *_parts(span, query, key, value)) for span in spans]))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output, grad_log_prob):  # type: ignore[no-untyped-def]
        query, key, value, *extras = ctx.saved_tensors
        needed = ctx.needs_input_grad[2:]
        totals = [torch.zeros_like(t) if n else None for t, n in zip((query, key, value), needed[:3], strict=True)]
        extra_totals = [torch.zeros_like(t) if n else None for t, n in zip(extras, needed[3:], strict=True)]
        for span in ctx.spans:
            block = [
                t.detach().requires_grad_(n) for t, n in zip(_parts(span, query, key, value), needed, strict=False)
            ]
            grads = _block_gradients(ctx.run, span, block, extras, needed, grad_output, grad_log_prob)
            _accumulate(_views(span, totals), grads[:3])
            _accumulate(extra_totals, grads[3:])
        return None, None, *totals, *extra_totals


def _views(span: Span, totals: Sequence[Tensor | None]) -> list[Tensor | None]:
    rows = [slice(span.start, span.stop), slice(span.first, span.last), slice(span.first, span.last)]
    return [None if total is None else total[..., own, :] for total, own in zip(totals, rows, strict=True)]


def _block_gradients(
    run: Run,
    span: Span,
    block: Sequence[Tensor],
    extras: Sequence[Tensor],
    needed: Sequence[bool],
    grad_output: Tensor,
    grad_log_prob: Tensor | None,
) -> list[Tensor | None]:
    """The gradients of one block, computed anew; None where none is needed or none flows."""
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


def _accumulate(totals: Sequence[Tensor | None], grads: Sequence[Tensor | None]) -> None:
    for total, grad in zip(totals, grads, strict=True):
        if total is not None and grad is not None:
            total += grad
