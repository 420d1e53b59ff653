"""Fused calls for blocks of queries, each over the range of keys that its mask leaves: O(n·w) in time and memory."""

from functools import partial

import torch

from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.algebra.shapes import Tensor
from regard.compute.lowering.backend import BackendResult
from regard.compute.kernels.blocks import BlockOutput, Span, run_blocks
from regard.compute.lowering.fuse import compute_dot_form, fuse
from regard.compute.lowering.precision import is_traced, loses_digits
from regard.compute.lowering.spans import cut_fused_spans
from regard.compute.lowering.windows import fuse_window


def run(call: AttentionCall) -> BackendResult:
    """Every block of queries against its own range of keys; the blocks of a plain window go many to a call."""
    folded = fuse_window(call)
    if folded is not None:
        output, form, total, raw = folded
        return BackendResult(output, None, form, total, loses_digits(raw, total, call.dtype))
    if call.parts.score.centers_keys and not is_traced():
        raw, _ = compute_dot_form(
            call.parts, call.query, call.key, Pairs(call.queries, call.keys, device=call.query.device)
        )
        if loses_digits(raw, None, call.dtype):
            return BackendResult(call.value, lost_digits=True)
    spans = cut_fused_spans(call.parts, call.queries, call.keys)
    block = partial(_run_block, call)
    learned = () if torch.compiler.is_compiling() else call.parts.tensors()
    return BackendResult(*run_blocks(block, spans, call.query, call.key, call.value, learned))


def _run_block(call: AttentionCall, span: Span, query: Tensor, key: Tensor, value: Tensor) -> BlockOutput:
    rows, columns = (span.start, span.stop), (span.first, span.last)
    pairs = Pairs(call.queries, call.keys, rows=rows, columns=columns, device=query.device)
    return BlockOutput(fuse(call.parts, query, key, value, pairs, square=False).output, None)
