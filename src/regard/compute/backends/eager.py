"""The definition, in whole tables."""

from regard.algebra.definition import read
from regard.algebra.pairs import Pairs
from regard.algebra.parts import Call
from regard.compute.backends.result import Result


def run(call: Call) -> Result:
    """Scores, weights and output, each written out."""
    pairs = Pairs(call.queries, call.keys, device=call.query.device)
    output, log_prob = read(call, call.parts.score, call.query, call.key, call.value, pairs)
    return Result(output.to(call.value.dtype), log_prob)
