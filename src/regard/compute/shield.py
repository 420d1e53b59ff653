"""Keep what a mask hides from queries that may not see it: 0 × NaN is NaN in every kernel, and so is ∞ − ∞.

Ordinary numbers need nothing. Broken ones (NaN, ±∞) are set to zero, and the queries that may see one get NaN. Huge
ones, whose products might overflow, are set to zero if no query may see them; otherwise the call is planned again
(`huge`), for a backend that takes pairs one by one. So it is if what a score makes of a key overflows (`key_growth`).
"""

import math
import sys
from typing import NamedTuple

import torch

from regard.algebra.masks import Full, Mask
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall, Parts
from regard.algebra.scores.base import as_dot
from regard.algebra.shapes import Bool, Float, Tensor
from regard.algebra.terms import cast_module
from regard.compute.kernels.native import tensor_memory
from regard.compute.lowering.spans import choose_rows_per_block, cut_spans

# Products of two such numbers, added up over a vector, and their products with a gradient stay finite.
LARGEST = {torch.float64: 1e150, torch.float32: 1e18, torch.bfloat16: 1e18, torch.float16: 2.0**7}


class FiniteInputs(NamedTuple):
    """Finite keys and values, and the queries that saw others."""

    key: Float[Tensor, "*#lead key dim"]
    value: Float[Tensor, "*#lead key value"]
    nan_outputs: Bool[Tensor, "*#lead query"] | None = None  # queries that may see a broken key or value: output NaN
    nan_weights: Bool[Tensor, "*#lead query"] | None = None  # queries that may see a broken key: weights NaN
    huge: bool = False


def shield(call: AttentionCall, *, half_in_float32: bool, centers_keys: bool) -> FiniteInputs:
    """Return keys and values that are harmless where a mask hides them.

    `half_in_float32`: the kernel adds up float16 in float32, so that its products do not overflow. `centers_keys`: some
    path subtracts the mean of the keys.
    """
    parts, query, key, value = call.parts, call.query, call.key, call.value
    if type(parts.mask) is Full or key.is_meta or not (query.numel() and key.numel() and value.numel()):
        return FiniteInputs(key, value)
    if centers_keys:
        key = _move_hidden(parts.mask, key)
    grows = parts.score.key_growth
    if grows == "any":  # an infinite derivative at a hidden key would make all gradients NaN
        key, value = _clear_hidden(parts, key, value)
    unlimited = half_in_float32 and key.dtype == torch.float16 and grows == "none"
    limit = sys.float_info.max if unlimited else LARGEST[key.dtype]
    if _bound_size(query, key, value) <= limit and (grows != "any" or not _overflows(parts, query, key)):
        return FiniteInputs(key, value)
    if not tensor_memory.is_readable(query, key, value):
        return _shield_unread(parts, query, key, value)
    key, value = _clear_hidden(parts, key, value)
    if math.isfinite(_bound_size(key, value)) and not _overflows(parts, query, key, torch.float64):
        return FiniteInputs(key, value, huge=_bound_size(query, key, value) > limit or _overflows(parts, query, key))
    cleared = _clear_broken(parts, query, key, value, math.inf)
    size = _bound_size(query, cleared.key, cleared.value)  # NaN if the query has one: only its own row is NaN then
    return cleared._replace(huge=size > limit or _overflows(parts, query, cleared.key))


def _overflows(parts: Parts, query: Tensor, key: Tensor, dtype: torch.dtype | None = None) -> bool:
    """Return whether the score makes an infinite number of some key, computed in this dtype or in that of the key."""
    return not bool(_find_finite_features(parts, query, key, dtype or key.dtype).all())


@torch.no_grad()
def _find_finite_features(parts: Parts, query: Tensor, key: Tensor, dtype: torch.dtype) -> Bool[Tensor, "*#lead #key"]:
    """Return the keys of which the score, computed in this dtype, makes finite numbers."""
    if parts.score.key_growth != "any" or parts.score.form != "dot":
        return torch.ones(1, dtype=torch.bool, device=key.device)
    score = as_dot(parts.score if dtype == key.dtype else cast_module(parts.score, dtype))
    key = key.to(dtype)
    form = score.dot_form(query[..., :1, :].to(dtype), key)
    finite = torch.isfinite(form.key).all(-1)
    return finite if form.column is None else finite & torch.isfinite(form.column)


def _shield_unread(parts: Parts, query: Tensor, key: Tensor, value: Tensor) -> FiniteInputs:
    """Return harmless keys and values of a call whose numbers cannot be read, whatever they are.

    A graph cannot be planned again, so that it has no other way for huge numbers: they are taken for broken ones.
    """
    limit = LARGEST[key.dtype] if tensor_memory.is_traced() and key.dtype != torch.float16 else math.inf
    return _clear_broken(parts, query, *_clear_hidden(parts, key, value), limit)


def _clear_broken(parts: Parts, query: Tensor, key: Tensor, value: Tensor, limit: float) -> FiniteInputs:
    """Set keys and values to zero that are not finite or beyond the limit, whether there are any or not."""
    sound_key, sound_value = (_find_sound(tensor, limit) for tensor in (key, value))
    unread = tensor_memory.is_traced() or not tensor_memory.is_readable(key)
    sound_key = sound_key & _find_finite_features(parts, query, key, key.dtype if unread else torch.float64)
    # Each by itself: a key that took the lead axes of its value would draw other dropout.
    clean, content = torch.where(sound_key[..., None], key, 0.0), torch.where(sound_value[..., None], value, 0.0)
    exposed = _find_exposed(parts, query.shape[-2], ~(sound_key & sound_value))
    blind = exposed if tensor_memory.is_traced() else _find_exposed(parts, query.shape[-2], ~sound_key)
    return FiniteInputs(clean, content, exposed, blind)


def _find_sound(tensor: Tensor, limit: float) -> Bool[Tensor, "..."]:
    """Return which vectors have finite numbers only, none of them beyond the limit."""
    sound = torch.isfinite(tensor) if limit == math.inf else tensor.abs() <= limit
    return sound.all(-1)


def _bound_size(*tensors: Tensor) -> float:
    """Return a bound on the size of all numbers; NaN or inf if one is, or if they cannot be read. One pass over each.

    The norm of all of a tensor is fast and seldom far too large; it would be in float16, where the limit is low.
    """
    if not tensor_memory.is_readable(*tensors):
        return math.inf
    if tensors[0].dtype == torch.float16:
        return sum(end.abs().item() for tensor in tensors for end in torch.aminmax(tensor.detach()))
    return sum(map(Tensor.item, torch._foreach_norm([*map(Tensor.detach, tensors)], 2)))


def _clear_hidden(parts: Parts, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Return keys and values with zeros for the keys that no query may see; keys that are centered, with their mean."""
    visible = parts.mask.find_visible_keys(key.shape[-2], key.device)
    if visible is None:
        return key, value
    if parts.score.centers_keys:
        key = _move_hidden(parts.mask, key)
    else:
        key = torch.where(visible[..., None], key, 0.0)
    return key, torch.where(visible[..., None], value, 0.0)


def _move_hidden(mask: Mask, key: Float[Tensor, "*#lead key dim"]) -> Float[Tensor, "*#lead key dim"]:
    """Put keys that no query may see at the mean of the others, so that centering does not depend on them."""
    visible = mask.find_visible_keys(key.shape[-2], key.device)
    if visible is None:
        return key
    wide = torch.promote_types(key.dtype, torch.float32)
    seen = torch.where(visible[..., None], key.detach(), 0.0).sum(-2, keepdim=True, dtype=wide)
    mean = seen / visible.sum(-1)[..., None, None].clamp_min(1)
    return torch.where(visible[..., None], key, mean.to(key.dtype))


def _find_exposed(parts: Parts, queries: int, broken: Bool[Tensor, "*#lead key"]) -> Bool[Tensor, "*#lead query"]:
    keys, found = broken.shape[-1], []
    for span in cut_spans(parts, queries, keys, choose_rows_per_block(broken.numel(), queries)):
        pairs = Pairs(queries, keys, rows=(span.start, span.stop), device=broken.device)
        seen = (parts.mask.allows(pairs) & broken[..., None, :]).any(-1)
        found.append(seen.expand(*seen.shape[:-1], span.stop - span.start))
    exposed = torch.cat(found, dim=-1)
    if parts.normalizer.form == "sequential":  # a row follows from those before it
        return exposed.long().cumsum(-1) > 0
    return exposed
