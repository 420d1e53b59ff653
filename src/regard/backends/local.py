"""Fused calls for blocks of queries, each over the range of keys that its mask leaves: O(n·w) in time and memory."""

from functools import partial

from regard.backends.result import Result
from regard.lowering.fuse import fuse
from regard.lowering.spans import fused_spans
from regard.lowering.windows import fuse_window
from regard.numerics.blocks import Read, Span, blocked
from regard.pairs import Pairs
from regard.parts import Call
from regard.shapes import Tensor


def run(call: Call) -> Result:
    """Every block of queries against its own range of keys; the blocks of a plain window go many to a call."""
    folded = fuse_window(call)
    if folded is not None:
        return Result(folded.output, None, folded.form, folded.total)
    spans = fused_spans(call.parts, call.queries, call.keys)
    block = partial(_block, call)
    return Result(*blocked(block, spans, call.query, call.key, call.value, call.parts.tensors()))


def _block(call: Call, span: Span, query: Tensor, key: Tensor, value: Tensor) -> Read:
    rows, columns = (span.start, span.stop), (span.first, span.last)
    pairs = Pairs(call.queries, call.keys, rows=rows, columns=columns, device=query.device)
    return Read(fuse(call.parts, query, key, value, pairs, square=False).output, None)
