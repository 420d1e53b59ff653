"""The attention of this library: any score, mask and normalizer, seen through its handle on the weights."""

import math

import torch
from torch import nn

from regard.algebra.aggregates import Soft
from regard.algebra.masks import Causal, Full
from regard.algebra.normalizers import Softmax
from regard.algebra.pairs import Pairs
from regard.algebra.scores import DotForm
from regard.algebra.shapes import Tensor
from regard.compute.planning.fuse import dense_table, mask_bias, scores_of
from regard.compute.planning.rules import dense_bias
from regard.compute.weights import Weights
from regard.inspect.observe.arguments import inside, pick, places, wide
from regard.inspect.observe.look import Computed, Look
from regard.layers import Attention

LARGEST_TABLE = 2**22  # numbers of a mask or bias that are written out to be looked at


def head_axes(site: nn.Module, lead: tuple[int, ...]) -> int:
    """How many of the lead axes are heads: the last, and in a layer of grouped heads the one before it too."""
    if isinstance(site, Attention):
        groups, heads = site.projections.groups, site.projections.heads
        return 2 if site.projections.grouped and lead[-2:] == (groups, heads // groups) else 1
    return 1 if len(lead) > 1 else 0


def of_tensor(weights: Tensor, item: int) -> Computed:
    """Weights (…, heads, queries, keys) that are there already."""
    own = wide(pick(weights, weights.shape[:-3], item))
    return Computed((own.shape[0], own.shape[1], own.shape[2]), lambda start, stop: own[:, start:stop])


def of_handle(weights: Weights, site: nn.Module, item: int) -> Look | Computed:
    """The weights of one `attend`."""
    heads = head_axes(site, weights.shape[:-2])
    form = _form(weights)
    look = None if form is None else _look(weights, form, heads, item)
    if look is not None:
        return look
    *lead, queries, keys = weights.shape
    batch = lead[: len(lead) - heads]

    def rows(start: int, stop: int) -> Tensor:
        return wide(_one(weights.tile(slice(start, stop), slice(None)), weights.shape[:-2], batch, item))

    sequential = weights.call.parts.normalizer.form == "sequential"
    return Computed((math.prod(lead[len(batch) :]), queries, keys), rows, queries if sequential else None)


def _form(weights: Weights) -> DotForm | None:
    """The dot form of a plain softmax, whichever way it was computed; None where it is something else."""
    if weights.totals is not None:
        return weights.totals.form.unscaled()
    call = weights.call
    parts = call.parts
    plain = type(parts.normalizer) is Softmax and type(parts.aggregate) is Soft and parts.score.form == "dot"
    if not plain:
        return None
    form, _ = scores_of(parts, call.query, call.key, Pairs(call.queries, call.keys, device=call.query.device))
    return form.folded(keep_row=False).unscaled()


def _look(weights: Weights, form: DotForm, heads: int, item: int) -> Look | None:
    """The same as what it was computed from; None where a mask is too large to be written out."""
    call = weights.call
    lead = weights.shape[:-2]
    batch = lead[: len(lead) - heads]
    query, key = (wide(_one(tensor.detach(), lead, batch, item)) for tensor in (form.query, form.key))
    mask = call.parts.mask
    if type(mask) in (Full, Causal) and (call.parts.bias is None or not dense_bias(call.parts, call.keys)):
        return Look(query, key, None, call.keys - call.queries if type(mask) is Causal else None)
    if call.queries * call.keys > LARGEST_TABLE:
        return None
    pairs = Pairs(call.queries, call.keys, device=query.device)
    with torch.no_grad():
        bias = mask_bias(call.parts, dense_table(call.parts, query, pairs), query, pairs)
    if bias is None:
        return Look(query, key)
    bias = bias.expand(*bias.shape[:-2], bias.shape[-2], call.keys)
    return Look(query, key, _one(bias, lead, batch, item))


def _one(tensor: Tensor, lead: tuple[int, ...], batch: list[int] | tuple[int, ...], item: int) -> Tensor:
    """One item of the batch, all its heads on one axis."""
    place = tuple(places(batch, inside(item, math.prod(batch))))
    return tensor.expand(*lead, *tensor.shape[-2:])[place].reshape(-1, *tensor.shape[-2:])
