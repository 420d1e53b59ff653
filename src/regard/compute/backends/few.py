"""A handful of queries, by a kernel of our own that reads only the pairs that are allowed."""

from regard.algebra.pairs import Pairs
from regard.algebra.parts import Call
from regard.compute.backends.result import Result
from regard.compute.kernels.few import few
from regard.compute.planning.fuse import scores_of


def run(call: Call) -> Result:
    """Everything folded into one dot product; the mask goes along as it is."""
    pairs = Pairs(call.queries, call.keys, device=call.query.device)
    form, _ = scores_of(call.parts, call.query, call.key, pairs)
    form = form.folded(keep_row=False).prepared()
    mask = call.parts.mask
    allowed = None if mask.free(call.queries) else mask.allowed(pairs)
    return Result(few(form.query, form.key, call.value, scale=float(form.scale), allowed=allowed))
