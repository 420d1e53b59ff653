"""The definition in blocks of queries, with the score's own fast derivation: any score, normalizer and aggregate."""

from functools import partial
from typing import ClassVar

import torch

from regard.algebra.definition import ScoreFunction, average_values, compute_wide_score
from regard.algebra.parts import AttentionCall, CallFacts, Parts
from regard.algebra.shapes import Tensor
from regard.compute.kernels.blocks import BlockOutput, Span, run_blocks
from regard.compute.lowering.backend import Backend, BackendResult
from regard.compute.lowering.conditions import (
    FUSED,
    MAPPED,
    SEQUENTIAL,
    UnsupportedReason,
    explain_unsupported_fused,
)
from regard.compute.lowering.reasons import PartForms, Step
from regard.compute.lowering.spans import cut_row_spans


class StreamBackend(Backend):
    """Chosen if the score or dropout rules out a fused kernel."""

    name: ClassVar[str] = "stream"
    in_blocks: ClassVar[bool] = True
    for_whole_rows: ClassVar[bool] = False

    def run(self, call: AttentionCall) -> BackendResult:
        """Compute in at least float32, and round once at the end."""
        block = partial(_run_block, call, partial(compute_wide_score, call.parts.score.stream))
        spans = cut_row_spans(call.parts, call.query, call.key)
        recomputed = torch.is_grad_enabled() and not torch.compiler.is_compiling()
        learned = call.parts.tensors() if recomputed else ()  # finding them takes a while
        return BackendResult(*run_blocks(block, spans, call.query, call.key, call.value, learned))

    def explain_unsupported(self, parts: Parts, facts: CallFacts) -> UnsupportedReason:
        if facts.mapped:
            return MAPPED
        return SEQUENTIAL if parts.normalizer.form == "sequential" else None

    def explain_choice(self, parts: Parts, facts: CallFacts) -> str | None:
        whole_rows = parts.normalizer.form == "rows" or parts.aggregate.form == "choice"
        if whole_rows != self.for_whole_rows or self.explain_unsupported(parts, facts) is not None:
            return None
        blocks = "blocks of whole rows" if whole_rows else "blocks of queries"
        return f"{explain_unsupported_fused(parts, facts)}; {blocks} bound the memory"

    def explain_bias(self, forms: PartForms) -> Step:
        return "added block by block", "the scores of a block are at hand"

    def explain_normalizer(self, forms: PartForms) -> Step:
        if forms.normalizer in FUSED:
            return "itself, on whole rows of a block", "a block holds all keys of its queries"
        return super().explain_normalizer(forms)


class RowsBackend(StreamBackend):
    """The same computation, chosen if the normalizer or the aggregate needs the weights of whole rows."""

    name: ClassVar[str] = "rows"
    for_whole_rows: ClassVar[bool] = True


def _run_block(
    call: AttentionCall, score: ScoreFunction, span: Span, query: Tensor, key: Tensor, value: Tensor
) -> BlockOutput:
    output, log_prob = average_values(call, score, query, key, value, call.pairs(span))
    return BlockOutput(output.to(value.dtype), log_prob)
