"""One fused call (two for local-p)."""

from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.compute.lowering.backend import BackendResult
from regard.compute.lowering.fuse import fuse
from regard.compute.lowering.precision import loses_digits


def run(call: AttentionCall) -> BackendResult:
    """Everything folded into one fused softmax attention over all pairs."""
    pairs = Pairs(call.queries, call.keys, device=call.query.device)
    square = call.queries == call.keys
    output, form, total, raw = fuse(call.parts, call.query, call.key, call.value, pairs, square=square)
    return BackendResult(output, None, form, total, loses_digits(raw, total, call.dtype))
