"""The definition, in whole tables."""

from typing import ClassVar

from regard.algebra.definition import average_values
from regard.algebra.parts import AttentionCall, CallFacts, Parts
from regard.compute.lowering.backend import Backend, BackendResult
from regard.compute.lowering.conditions import MAPPED, SEQUENTIAL, UnsupportedReason
from regard.compute.lowering.reasons import PartForms, Step

DEFINITION = "eager is the definition"


class EagerBackend(Backend):
    """Scores, weights and output, each written out."""

    name: ClassVar[str] = "eager"

    def run(self, call: AttentionCall) -> BackendResult:
        output, log_prob = average_values(call, call.parts.score, call.query, call.key, call.value, call.pairs())
        return BackendResult(output.to(call.value.dtype), log_prob)

    def explain_unsupported(self, parts: Parts, facts: CallFacts) -> UnsupportedReason:
        return None

    def explain_choice(self, parts: Parts, facts: CallFacts) -> str:
        return MAPPED if facts.mapped else SEQUENTIAL

    def widens_gradients(self, *, asked: bool) -> bool:
        return not asked  # by name it is the definition, in the dtype of the tensors

    def estimate_memory(self, facts: CallFacts, pairs: int, table: int) -> int:
        return 2 * table

    def explain_score(self, forms: PartForms, facts: CallFacts) -> Step:
        return f"{forms.score.__name__} as it is defined", DEFINITION

    def explain_bias(self, forms: PartForms) -> Step:
        return "added to the scores", DEFINITION

    def explain_normalizer(self, forms: PartForms) -> Step:
        return "as it is defined", DEFINITION
