"""FlexAttention, for CUDA. Its forward is tested on the CPU; its CUDA kernels could not be run here."""

from collections.abc import Callable
from typing import ClassVar

import torch

from regard.algebra.masks import Causal, Full, Mask, Window
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall, CallFacts, Parts
from regard.algebra.shapes import Tensor
from regard.compute.lowering.backend import Backend, BackendResult
from regard.compute.lowering.conditions import UnsupportedReason, explain_unsupported_fused
from regard.compute.lowering.fuse import compute_dot_form
from regard.compute.lowering.precision import loses_digits

MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class FlexBackend(Backend):
    """The dot form, with a block mask from the mask's own rule. It is never chosen by `auto`."""

    name: ClassVar[str] = "flex"
    sums_half_in_float32: ClassVar[bool] = True

    def run(self, call: AttentionCall) -> BackendResult:
        # Imported here: it loads the compiler front end, which nobody else needs.
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        raw, _ = compute_dot_form(call.parts, call.query, call.key, call.pairs())
        form = raw.fold_offsets(keep_row=False).fold_scale()
        mask = None
        if type(call.parts.mask) is not Full:
            rule, device = make_mask_function(call.parts.mask, call.queries, call.keys), str(call.query.device)
            mask = create_block_mask(rule, None, None, call.queries, call.keys, device=device)
        lead = torch.broadcast_shapes(form.query.shape[:-2], form.key.shape[:-2], call.value.shape[:-2])
        query, key, value = (part.expand(*lead, *part.shape[-2:]) for part in (form.query, form.key, call.value))
        if not torch.is_grad_enabled():  # FlexAttention looks at the tensors alone, and has no backward on the CPU
            query, key, value = query.detach(), key.detach(), value.detach()
        output = flex_attention(query, key, value, block_mask=mask, scale=1.0)
        if not isinstance(output, Tensor):
            raise TypeError(f"flex_attention: got {type(output).__name__}, expected a tensor; fix: use backend='sdpa'")
        return BackendResult(output, lost_digits=loses_digits(call, raw, None))

    def explain_unsupported(self, parts: Parts, facts: CallFacts) -> UnsupportedReason:
        reason = explain_unsupported_fused(parts, facts)
        if reason is not None or parts.normalizer.form != "softmax" or parts.bias is not None:
            return reason or "flex is used for plain softmax without a bias"
        if facts.device == "cpu" and facts.grad:
            return "FlexAttention has no backward on the CPU"
        if not self.accepts_mask(parts.mask):
            return "flex is used for full, causal and window masks"
        return None if len(facts.lead) == 2 else "flex wants (batch, heads) in front"

    def accepts_mask(self, mask: Mask) -> bool:
        return type(mask) in (Full, Causal, Window)


class SinglePair(Pairs):
    """A single pair, whose indices are the tensors that FlexAttention traces with."""

    __slots__ = ("_column", "_row")

    def __init__(self, queries: int, keys: int, row: Tensor, column: Tensor) -> None:
        super().__init__(queries, keys, device=row.device)
        self._row, self._column = row, column

    @property
    def row(self) -> Tensor:
        return self._row[None, None]

    @property
    def column(self) -> Tensor:
        return self._column[None, None]


def make_mask_function(mask: Mask, queries: int, keys: int) -> MaskFunction:
    """Return the mask as a rule for one pair at a time."""
    return lambda batch, head, row, column: mask.allows(SinglePair(queries, keys, row, column))[0, 0]
