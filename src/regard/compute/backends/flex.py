"""FlexAttention: thin, for CUDA. Its forward is tested on the CPU; its CUDA kernels could not be run where this was
written."""

from collections.abc import Callable

import torch

from regard.algebra.masks import Full, Mask
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.algebra.shapes import Tensor
from regard.compute.lowering.backend import BackendResult
from regard.compute.lowering.fuse import compute_dot_form

MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def run(call: AttentionCall) -> BackendResult:
    """Dot form in, block mask from the mask's own rule."""
    # Imported here: it loads the compiler front end, which nobody else needs.
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    pairs = Pairs(call.queries, call.keys, device=call.query.device)
    form, _ = compute_dot_form(call.parts, call.query, call.key, pairs)
    form = form.fold_offsets(keep_row=False).fold_scale()
    mask = None
    if type(call.parts.mask) is not Full:
        rule, device = make_mask_function(call.parts.mask, call.queries, call.keys), str(call.query.device)
        mask = create_block_mask(rule, None, None, call.queries, call.keys, device=device)
    lead = torch.broadcast_shapes(form.query.shape[:-2], form.key.shape[:-2], call.value.shape[:-2])
    query, key, value = (part.expand(*lead, *part.shape[-2:]) for part in (form.query, form.key, call.value))
    if not torch.is_grad_enabled():  # it looks at the tensors alone, and has no backward on the CPU
        query, key, value = query.detach(), key.detach(), value.detach()
    output = flex_attention(query, key, value, block_mask=mask, scale=1.0)
    if not isinstance(output, Tensor):
        raise TypeError(f"flex_attention: got {type(output).__name__}, expected a tensor; fix: use backend='sdpa'")
    return BackendResult(output)


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
    """The mask as a rule for one pair at a time."""
    return lambda batch, head, row, column: mask.allows(SinglePair(queries, keys, row, column))[0, 0]
