"""The definition in blocks of queries, with the score's own fast derivation: any score, normalizer and aggregate."""

from functools import partial
from typing import ClassVar

import torch

from regard.algebra.definition import ScoreFunction, average_values, compute_wide_score, score_pairs
from regard.algebra.masks import Full
from regard.algebra.pairs import Pairs, Span
from regard.algebra.parts import AttentionCall, CallFacts, Parts
from regard.algebra.shapes import Tensor
from regard.compute.kernels.blocks import BlockOutput, run_blocks
from regard.compute.kernels.native import tensor_memory
from regard.compute.lowering.backend import Backend, BackendResult
from regard.compute.lowering.conditions import FUSED, MAPPED, SEQUENTIAL, UnsupportedReason, explain_unsupported_fused
from regard.compute.lowering.hard import fuse_hard
from regard.compute.lowering.reasons import PartForms, Step
from regard.compute.lowering.spans import cut_row_spans


class StreamBackend(Backend):
    """Chosen if the score or dropout rules out a fused kernel."""

    name: ClassVar[str] = "stream"
    in_blocks: ClassVar[bool] = True
    for_whole_rows: ClassVar[bool] = False

    def run(self, call: AttentionCall) -> BackendResult:
        """Compute in at least float32, and round once at the end."""
        hard = fuse_hard(call) if call.parts.aggregate.takes_largest else None
        if hard is not None:
            return BackendResult(hard)
        block = partial(_run_block, call, partial(compute_wide_score, call.parts.score.stream))
        spans = cut_row_spans(call.parts, call.query, call.key)
        recomputed = len(spans) > 1 and torch.is_grad_enabled() and not torch.compiler.is_compiling()
        learned = call.parts.tensors() if recomputed else ()  # spans take a while to find
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

    def widens_gradients(self, *, asked: bool) -> bool:
        return True

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
    order_is_enough = _is_order_enough(call)
    pairs = span.build_pairs(call.query.shape[-2], call.key.shape[-2], query.device)
    if order_is_enough:
        picked = pick_largest(call.parts, score_pairs(call.parts, score, query, key, pairs), value, pairs)
        if picked is not None:
            return BlockOutput(picked, None)
    output, log_prob = average_values(call, score, query, key, value, pairs)
    return BlockOutput(output.to(value.dtype), log_prob)


def _is_order_enough(call: AttentionCall) -> bool:
    """Return whether the output depends on the order of the scores alone: softmax keeps it, and gives no row zeros."""
    parts = call.parts
    if not parts.aggregate.takes_largest or call.dropout or parts.normalizer.form != "softmax":
        return False
    if torch.is_grad_enabled() or tensor_memory.is_forward_mode():
        return False
    return tensor_memory.is_readable(call.query, call.key, call.value)


def pick_largest(parts: Parts, scores: Tensor, value: Tensor, pairs: Pairs) -> Tensor | None:
    """Return the value of the first of the largest scores of each query, zeros if it sees no key.

    None if a largest score is NaN: only the definition says what becomes of that.
    """
    if type(parts.mask) is not Full:
        scores = scores.masked_fill(~parts.mask.allows(pairs), float("-inf"))
    largest, column = scores.max(-1, keepdim=True)
    if not bool((largest < float("inf")).all()):  # false for NaN too
        return None
    lead = torch.broadcast_shapes(value.shape[:-2], column.shape[:-2])
    picked = torch.take_along_dim(value.expand(*lead, -1, -1), column.expand(*lead, -1, -1), -2)
    return picked if type(parts.mask) is Full else picked.masked_fill(largest == float("-inf"), 0.0)
