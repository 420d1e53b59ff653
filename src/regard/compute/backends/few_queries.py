"""A few queries without a gradient, by a kernel of our own that reads only the pairs that are allowed."""

from typing import ClassVar

from regard.algebra.parts import AttentionCall, CallFacts, Parts
from regard.compute.kernels.few_queries import DTYPES, MOST_QUERIES, few_queries_attention
from regard.compute.lowering.backend import Backend, BackendResult
from regard.compute.lowering.conditions import UnsupportedReason, explain_unsupported_fused
from regard.compute.lowering.fuse import compute_dot_form
from regard.compute.lowering.reasons import PartForms, Step


class FewQueriesBackend(Backend):
    """Everything but the mask is folded into one dot product."""

    name: ClassVar[str] = "few_queries"
    has_backward: ClassVar[bool] = False
    reads_hidden_keys: ClassVar[bool] = False

    def run(self, call: AttentionCall) -> BackendResult:
        pairs, mask = call.pairs(), call.parts.mask
        form, _ = compute_dot_form(call.parts, call.query, call.key, pairs)
        form = form.fold_offsets(keep_row=False).make_scale_positive()
        allowed = None if mask.allows_all(call.queries) else mask.allows(pairs)
        output = few_queries_attention(form.query, form.key, call.value, scale=float(form.scale), allowed=allowed)
        return BackendResult(output)

    def explain_unsupported(self, parts: Parts, facts: CallFacts) -> UnsupportedReason:
        reason = explain_unsupported_fused(parts, facts)
        if reason is not None or parts.normalizer.form != "softmax" or parts.bias is not None:
            return reason or "it takes a plain softmax without a bias: one of −inf would look like a broken key"
        if parts.score.centers_keys:
            return "the score centers the keys, the hidden ones too"
        if facts.grad or facts.traced or facts.mapped:
            return "it has no backward" if facts.grad else "a compiler cannot see into it"
        written = facts.device == "cpu" and facts.dtype in DTYPES and not facts.intercepted
        return None if written and facts.native == "loaded" else "no compiled library is there for it"

    def explain_choice(self, parts: Parts, facts: CallFacts) -> str | None:
        if self.explain_unsupported(parts, facts) is not None:
            return None  # checked first: a comparison with a traced length would fix that length
        if facts.queries > MOST_QUERIES or parts.mask.allows_all(facts.queries):
            return None
        return "a handful of queries wants no gradient, so that only the pairs that are allowed are read"

    def explain_mask(self, forms: PartForms) -> Step:
        return "a list of keys for each query", "keys that are not in it are never read"
