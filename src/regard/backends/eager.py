"""The definition, in whole tables."""

from regard.backends.result import Result
from regard.definition import read
from regard.pairs import Pairs
from regard.parts import Call


def run(call: Call) -> Result:
    """Scores, weights and output, each written out."""
    pairs = Pairs(call.queries, call.keys, device=call.query.device)
    output, log_prob = read(call, call.parts.score, call.query, call.key, call.value, pairs)
    return Result(output.to(call.value.dtype), log_prob)
