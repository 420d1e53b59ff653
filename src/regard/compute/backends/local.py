"""Fused calls for blocks of queries, each over the keys that its mask leaves.

O(n·w) in time and memory for a mask of width w, and for others of which a block sees about w keys. For a dense mask a
block reads all keys, and what is saved is the memory of a table of all pairs.
"""

from functools import partial
from typing import ClassVar

import torch

from regard.algebra.pairs import Span
from regard.algebra.parts import AttentionCall, CallFacts, Parts
from regard.algebra.shapes import Tensor
from regard.compute.kernels.blocks import BlockOutput, run_blocks
from regard.compute.kernels.native import tensor_memory
from regard.compute.lowering.backend import Backend, BackendResult
from regard.compute.lowering.conditions import (
    UnsupportedReason,
    explain_unsupported_fused,
    needs_dense_bias,
    needs_table,
)
from regard.compute.lowering.fuse import compute_dot_form, fuse
from regard.compute.lowering.gather import fuse_gathered
from regard.compute.lowering.precision import LostDigitsError, loses_digits
from regard.compute.lowering.spans import cut_fused_spans
from regard.compute.lowering.windows import fuse_window

LARGE_TABLE = 2**24  # pairs; a float mask of them takes 64 MB, and blocks of queries need none of it
SMALL_TABLE = 2**14  # pairs; a bias of one number for each key becomes dense above


class LocalBackend(Backend):
    """Every block of queries against its own range of keys; the blocks of a plain window go many to a call."""

    name: ClassVar[str] = "local"
    sums_half_in_float32: ClassVar[bool] = True
    in_blocks: ClassVar[bool] = True

    def run(self, call: AttentionCall) -> BackendResult:
        fused = fuse_window(call) or fuse_gathered(call)
        if fused is not None:
            output, form, total, raw = fused
            return BackendResult(output, None, form, total, loses_digits(call, raw, total))
        if call.parts.score.centers_keys and not tensor_memory.is_traced():
            raw, _ = compute_dot_form(call.parts, call.query, call.key, call.pairs())
            if loses_digits(call, raw, None):
                return BackendResult(call.value, lost_digits=True)
        spans = cut_fused_spans(call.parts, call.queries, call.keys)
        learned = () if torch.compiler.is_compiling() else call.parts.tensors()
        try:
            block = partial(_run_block, call)
            return BackendResult(*run_blocks(block, spans, call.query, call.key, call.value, learned))
        except LostDigitsError:
            return BackendResult(call.value, lost_digits=True)

    def explain_unsupported(self, parts: Parts, facts: CallFacts) -> UnsupportedReason:
        return explain_unsupported_fused(parts, facts)

    def explain_choice(self, parts: Parts, facts: CallFacts) -> str | None:
        if explain_unsupported_fused(parts, facts) is not None:
            return None
        width = parts.mask.width
        if width is not None and facts.keys >= 512 and 4 * width <= facts.keys:
            keys = "the" if facts.traced else facts.keys
            return f"a query sees at most {width} of {keys} keys, so only those are read"
        if facts.sparse:
            return f"blocks of queries see few of {facts.keys} keys, so only those are read"
        # A bias that is dense only because there are many keys would cost memory that is not linear in the length.
        dense_by_length = needs_dense_bias(parts, facts.keys) and not needs_dense_bias(parts, 1)
        if needs_table(parts, facts) and facts.queries * facts.keys > (SMALL_TABLE if dense_by_length else LARGE_TABLE):
            return "a mask of this size would not be linear in the length, blocks of it are"
        return None


def _run_block(call: AttentionCall, span: Span, query: Tensor, key: Tensor, value: Tensor) -> BlockOutput:
    pairs = span.build_pairs(call.query.shape[-2], call.key.shape[-2], query.device)
    return BlockOutput(fuse(call.parts, query, key, value, pairs, square=False).output, None)
