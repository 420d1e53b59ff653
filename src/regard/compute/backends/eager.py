"""The definition, in whole tables."""

from regard.algebra.definition import average_values
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.compute.lowering.backend import BackendResult


def run(call: AttentionCall) -> BackendResult:
    """Scores, weights and output, each written out."""
    pairs = Pairs(call.queries, call.keys, device=call.query.device)
    output, log_prob = average_values(call, call.parts.score, call.query, call.key, call.value, pairs)
    return BackendResult(output.to(call.value.dtype), log_prob)
