"""One fused call (two for local-p)."""

from regard.backends.result import Result
from regard.lowering.fuse import fuse
from regard.lowering.precision import loses_digits
from regard.pairs import Pairs
from regard.parts import Call


def run(call: Call) -> Result:
    """Everything folded into one fused softmax attention over all pairs."""
    pairs = Pairs(call.queries, call.keys, device=call.query.device)
    square = call.queries == call.keys
    output, form, total, raw = fuse(call.parts, call.query, call.key, call.value, pairs, square=square)
    return Result(output, None, form, total, loses_digits(raw, total, call.dtype))
