"""A handful of queries, by a kernel of our own that reads only the pairs that are allowed."""

from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.compute.lowering.backend import BackendResult
from regard.compute.kernels.few_queries import few_queries_attention
from regard.compute.lowering.fuse import compute_dot_form


def run(call: AttentionCall) -> BackendResult:
    """Everything folded into one dot product; the mask goes along as it is."""
    pairs = Pairs(call.queries, call.keys, device=call.query.device)
    form, _ = compute_dot_form(call.parts, call.query, call.key, pairs)
    form = form.fold_offsets(keep_row=False).make_scale_positive()
    mask = call.parts.mask
    allowed = None if mask.allows_all(call.queries) else mask.allows(pairs)
    return BackendResult(
        few_queries_attention(form.query, form.key, call.value, scale=float(form.scale), allowed=allowed)
    )
