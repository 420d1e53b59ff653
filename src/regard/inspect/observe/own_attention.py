"""Build calls from the attention of this library: any score, mask and normalizer, through its weights handle."""

import math
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from regard.algebra.aggregates import Soft
from regard.algebra.masks import Causal, Full
from regard.algebra.normalizers import Softmax
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.algebra.scores import DotForm
from regard.algebra.shapes import Tensor
from regard.compute.lowering.conditions import needs_dense_bias
from regard.compute.lowering.fuse import build_dense_bias, build_mask_bias, compute_dot_form
from regard.compute.weights import Weights
from regard.inspect.observe.arguments import check_item, select_item, unravel_index, upcast_half
from regard.inspect.observe.calls import ObservedCall, RowwiseCall, SoftmaxCall
from regard.inspect.observe.origins import build_handle_origin
from regard.layers import Attention

LARGEST_TABLE = 2**22  # numbers of a mask or bias that may be written out


def count_head_axes(site: nn.Module, lead: tuple[int, ...]) -> int:
    """Return how many of the lead axes are heads: the last, and in a layer of grouped heads the one before it too."""
    if isinstance(site, Attention):
        groups, heads = site.projections.groups, site.projections.heads
        return 2 if site.projections.grouped and lead[-2:] == (groups, heads // groups) else 1
    return 1 if len(lead) > 1 else 0


def build_tensor_call(weights: Tensor, item: int, call: AttentionCall | None = None) -> RowwiseCall:
    """Return the call of weights (…, heads, queries, keys) that are computed already, from `call` if that is known."""
    table = upcast_half(select_item(weights, weights.shape[:-3], item))
    heads, queries, keys = table.shape
    select = partial(_select_item, lead=tuple(weights.shape[:-2]), batch=tuple(weights.shape[:-3]), item=item)
    find_origin = None if call is None else partial(build_handle_origin, call, select, heads)
    size = table.element_size()
    return RowwiseCall((heads, queries, keys), lambda start, stop: table[:, start:stop], None, size, find_origin)


def build_handle_call(weights: Weights, heads: int, item: int) -> ObservedCall:
    """Return the call of one `attend`, whose last `heads` axes before queries and keys are heads."""
    merged = len(weights.call.lead) - len(weights.shape[:-2])  # groups and the heads of each, which are heads for sure
    heads = max(merged, heads)
    form = _find_dot_form(weights)
    call = None if form is None else _build_softmax_call(weights, form, heads, item)
    *lead, queries, keys = weights.shape
    batch = lead[: len(lead) - heads]
    select = partial(_select_item, lead=tuple(lead), batch=batch, item=item)
    find_origin = partial(build_handle_origin, weights.call, select, math.prod(lead[len(batch) :]))
    if call is not None:
        return replace(call, find_origin=find_origin)

    def rows(start: int, stop: int) -> Tensor:
        return upcast_half(_select_item(weights.tile(slice(start, stop), slice(None)), weights.shape[:-2], batch, item))

    sequential = weights.call.parts.normalizer.form == "sequential"
    shape = math.prod(lead[len(batch) :]), queries, keys
    size = max(4, weights.call.query.element_size())
    return RowwiseCall(shape, rows, queries if sequential else None, size, find_origin)


def _find_dot_form(weights: Weights) -> DotForm | None:
    """Return the dot form of a plain softmax, whichever backend computed it; None if it is something else."""
    if weights.totals is not None:
        return weights.totals.form.fold_scale()
    call = weights.call
    parts = call.parts
    plain = type(parts.normalizer) is Softmax and type(parts.aggregate) is Soft and parts.score.form == "dot"
    if not plain:
        return None
    form, _ = compute_dot_form(parts, call.query, call.key, Pairs(call.queries, call.keys, device=call.query.device))
    return form.fold_offsets(keep_row=False).fold_scale()


def _build_softmax_call(weights: Weights, form: DotForm, heads: int, item: int) -> SoftmaxCall | None:
    """Return the queries, keys and mask it was computed from; None if the mask is too large to be written out."""
    call = weights.call
    lead = call.lead  # which has groups and the heads of each, if `attend` has made one axis of them
    batch = weights.shape[: len(weights.shape) - 2 - heads]
    query, key = (upcast_half(_select_item(tensor.detach(), lead, batch, item)) for tensor in (form.query, form.key))
    mask = call.parts.mask
    if type(mask) in (Full, Causal) and (call.parts.bias is None or not needs_dense_bias(call.parts, call.keys)):
        return SoftmaxCall(query, key, None, call.keys - call.queries if type(mask) is Causal else None)
    if call.queries * call.keys > LARGEST_TABLE:
        return None
    pairs = Pairs(call.queries, call.keys, device=query.device)
    with torch.no_grad():
        bias = build_mask_bias(call.parts, build_dense_bias(call.parts, query, pairs), query, pairs)
    if bias is None:
        return SoftmaxCall(query, key)
    bias = bias.expand(*bias.shape[:-2], bias.shape[-2], call.keys)
    return SoftmaxCall(query, key, _select_item(bias, lead, batch, item))


def _select_item(tensor: Tensor, lead: tuple[int, ...], batch: list[int] | tuple[int, ...], item: int) -> Tensor:
    """Return one item of the batch, with all its heads on one axis."""
    index = tuple(unravel_index(batch, check_item(item, math.prod(batch))))
    return tensor.expand(*lead, *tensor.shape[-2:])[index].reshape(-1, *tensor.shape[-2:])
