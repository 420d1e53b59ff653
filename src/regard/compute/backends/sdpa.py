"""One call of torch's fused attention (two for local-p)."""

from typing import ClassVar

from regard.algebra.parts import AttentionCall, CallFacts, Parts
from regard.compute.lowering.backend import Backend, BackendResult
from regard.compute.lowering.conditions import UnsupportedReason, explain_unsupported_fused
from regard.compute.lowering.fuse import fuse
from regard.compute.lowering.precision import LostDigitsError, loses_digits
from regard.compute.lowering.reasons import PartForms, Step


class SDPABackend(Backend):
    """Everything folded into one fused softmax attention over all pairs."""

    name: ClassVar[str] = "sdpa"
    sums_half_in_float32: ClassVar[bool] = True

    def run(self, call: AttentionCall) -> BackendResult:
        square = call.queries == call.keys
        try:
            output, form, total, raw = fuse(call.parts, call.query, call.key, call.value, call.pairs(), square=square)
        except LostDigitsError:
            return BackendResult(call.value, lost_digits=True)
        return BackendResult(output, None, form, total, loses_digits(call, raw, total))

    def explain_unsupported(self, parts: Parts, facts: CallFacts) -> UnsupportedReason:
        return explain_unsupported_fused(parts, facts)

    def explain_choice(self, parts: Parts, facts: CallFacts) -> str | None:
        if explain_unsupported_fused(parts, facts) is not None:
            return None
        if parts.normalizer.form == "local-p":
            return "it is two softmaxes of a dot product, with and without the Gaussian"
        return "it is a softmax of a dot product"

    def explain_mask(self, forms: PartForms) -> Step:
        if forms.has_causal_flag:
            return "the kernel's causal flag", "there are as many queries as keys"
        return super().explain_mask(forms)
