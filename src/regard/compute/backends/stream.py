"""Blocks of queries whose scores come from the score's own fast derivation: any score, normalizer and reading.

It serves two names. A plan says `stream` where the score or dropout keeps a fused kernel away, and `rows` where the
normalizer or the reading needs the weights of whole rows.
"""

from functools import partial

import torch

from regard.algebra.definition import ScoreFunction, average_values, widen_score
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.algebra.shapes import Tensor
from regard.compute.lowering.backend import BackendResult
from regard.compute.kernels.blocks import BlockOutput, Span, run_blocks
from regard.compute.lowering.spans import cut_row_spans


def run(call: AttentionCall) -> BackendResult:
    """The definition block by block, computed in at least float32 and rounded once at the end."""
    block = partial(_run_block, call, widen_score(call.parts.score.stream))
    spans = cut_row_spans(call.parts, call.query, call.key)
    recomputed = torch.is_grad_enabled() and not torch.compiler.is_compiling()
    learned = call.parts.tensors() if recomputed else ()  # finding them takes a while
    return BackendResult(*run_blocks(block, spans, call.query, call.key, call.value, learned))


def _run_block(
    call: AttentionCall, score: ScoreFunction, span: Span, query: Tensor, key: Tensor, value: Tensor
) -> BlockOutput:
    rows, columns = (span.start, span.stop), (span.first, span.last)
    pairs = Pairs(call.queries, call.keys, rows=rows, columns=columns, device=query.device)
    output, log_prob = average_values(call, score, query, key, value, pairs)
    return BlockOutput(output.to(value.dtype), log_prob)
