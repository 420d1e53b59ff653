"""How hard attention becomes a loop that keeps the largest product of each query, and no table of weights."""

import math

import torch

from regard.algebra.masks import Causal, Full
from regard.algebra.parts import AttentionCall
from regard.algebra.scores.base import DotForm
from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.largest import Choice, find_largest, straight_through_attention
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX
from regard.compute.lowering import gather, spans
from regard.compute.lowering.fuse import build_mask_bias, compute_dot_form

FEWEST_QUERIES = 8  # fewer do not fill a vector
LARGEST_TABLE = 2**24  # pairs of a mask that is written out for the backward pass


def fuse_hard(call: AttentionCall) -> Float[Tensor, "*lead query value"] | None:
    """Return the output if only the order of plain products matters; otherwise None."""
    if not _is_plain(call) or not tensor_memory.is_reachable(call.query, call.key, call.value):
        return None
    raw = compute_dot_form(call.parts, call.query, call.key, call.pairs())[0]
    if raw.row is not None or raw.column is not None:  # differences of large terms: not without more digits
        return None
    form = raw.make_scale_positive()
    learned = torch.is_grad_enabled() and any(t.requires_grad for t in (form.query, form.key, call.value))
    if learned and not _may_write_mask(call):
        return None
    choice = choose_keys(call, form)
    if choice is None or not learned:
        return None if choice is None else choice.output
    causal = type(call.parts.mask) is Causal and call.queries == call.keys
    bias = None if causal else build_mask_bias(call.parts, None, form.query, call.pairs())
    scale = float(form.scale)
    return straight_through_attention(form.query, form.key, call.value, choice, scale=scale, causal=causal, bias=bias)


def _is_plain(call: AttentionCall) -> bool:
    """Return whether the largest product is the largest weight, and vectors of queries can be filled."""
    parts = call.parts
    takes = parts.aggregate.takes_largest and parts.normalizer.form == "softmax" and not call.dropout
    if not takes or parts.bias is not None or parts.score.form != "dot":
        return False
    return call.query.dtype in SUFFIX and call.queries >= FEWEST_QUERIES and call.keys > 0


def _may_write_mask(call: AttentionCall) -> bool:
    mask = call.parts.mask
    return mask.columnwise or type(mask) is Causal or call.queries * call.keys <= LARGEST_TABLE


def choose_keys(call: AttentionCall, form: DotForm) -> Choice | None:
    """Return the choice of each query, from blocks of queries if a mask has to be written out."""
    parts, queries, keys = call.parts, call.queries, call.keys
    if type(parts.mask) in (Full, Causal):
        return find_largest(form.query, form.key, call.value, causal=type(parts.mask) is Causal)
    if spans.may_gather(parts, queries, keys) and gather.is_sparse(parts.mask, queries, keys):
        return None
    lead = math.prod(torch.broadcast_shapes((), *(part.lead for part in parts.mask.leaves())))
    found = []
    for span in spans.cut_spans(parts, queries, keys, spans.choose_rows_per_block(lead * keys, queries)):
        allowed = parts.mask.allows(span.build_pairs(queries, keys, call.query.device))
        rows, columns = slice(span.start, span.stop), slice(span.first, span.last)
        given = form.query[..., rows, :], form.key[..., columns, :], call.value[..., columns, :]
        choice = find_largest(*given, allowed)
        if choice is None:
            return None
        found.append(choice._replace(keys=torch.where(choice.keys < 0, -1, choice.keys + span.first)))
    return Choice(torch.cat([choice.output for choice in found], -2), torch.cat([choice.keys for choice in found], -1))
