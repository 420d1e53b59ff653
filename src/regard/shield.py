"""What a mask hides must not reach a query that may not see it: 0 × NaN is NaN in every kernel, and ∞ − ∞ too.

Three kinds of content are told apart. Ordinary numbers need nothing. Broken ones (NaN, ±∞) are set to zero, and the
queries that may see one get NaN. Huge ones, whose products might overflow, are computed on another way if any query may
see them (`huge`), and set to zero if none may.
"""

import math
import sys
from typing import NamedTuple

import torch

from regard.lowering.precision import is_traced
from regard.lowering.spans import spans_of
from regard.masks import Full, Mask
from regard.numerics.blocks import rows_per_block
from regard.numerics.native import gate
from regard.pairs import Pairs
from regard.parts import Call, Parts
from regard.shapes import Bool, Float, Tensor

# Products of two such numbers, added up over a vector, and their products with a gradient stay finite.
LARGEST = {torch.float64: 1e150, torch.float32: 1e18, torch.bfloat16: 1e18, torch.float16: 2.0**7}
FUSED = ("sdpa", "local", "flex")  # kernels that add up float16 in float32


class Shielded(NamedTuple):
    """Keys and values that are all finite, and what the others ask for."""

    key: Float[Tensor, "*#lead key dim"]
    value: Float[Tensor, "*#lead key value"]
    exposed: Bool[Tensor, "*#lead query"] | None = None  # queries that may see a broken key or value: output NaN
    blind: Bool[Tensor, "*#lead query"] | None = None  # queries that may see a broken key: weights NaN
    huge: bool = False


def shield(call: Call, backend: str) -> Shielded:
    """Return keys and values that can do no harm where a mask hides them."""
    parts, query, key, value = call.parts, call.query, call.key, call.value
    if type(parts.mask) is Full or key.is_meta or not (query.numel() and key.numel() and value.numel()):
        return Shielded(key, value)
    if parts.score.centers_keys:
        key = _move_hidden(parts.mask, key)
    if not (gate.known(query) and gate.known(key) and gate.known(value)):
        return _shield_traced(parts, call.queries, key, value)
    fused = backend in FUSED and key.dtype == torch.float16
    limit = sys.float_info.max if fused else LARGEST[key.dtype]
    if _largest(query, key, value) <= limit:
        return Shielded(key, value)
    key, value = _clear_hidden(parts.mask, key, value)
    if math.isfinite(_largest(key, value)):
        return Shielded(key, value, huge=_largest(query, key, value) > limit)
    cleared = _shield_traced(parts, call.queries, key, value)
    return cleared._replace(huge=_largest(query, cleared.key, cleared.value) > limit)


def _shield_traced(parts: Parts, queries: int, key: Tensor, value: Tensor) -> Shielded:
    """Broken ones set to zero, whether there are any or not."""
    sound_key, sound_value = torch.isfinite(key).all(-1), torch.isfinite(value).all(-1)
    # Each by itself: a key that took the lead axes of its value would draw other dropout.
    clean, content = torch.where(sound_key[..., None], key, 0.0), torch.where(sound_value[..., None], value, 0.0)
    exposed = _find_exposed(parts, queries, ~(sound_key & sound_value))
    blind = exposed if is_traced() else _find_exposed(parts, queries, ~sound_key)
    return Shielded(clean, content, exposed, blind)


def _largest(*tensors: Tensor) -> float:
    """Return a bound on the size of all numbers; NaN or inf if one is. One pass over each tensor.

    The norm of all of a tensor is fast and seldom far too large; it would be in float16, where the limit is low.
    """
    if tensors[0].dtype == torch.float16:
        return sum(end.abs().item() for tensor in tensors for end in torch.aminmax(tensor.detach()))
    norms = torch._foreach_norm([tensor.detach() for tensor in tensors], 2)
    return sum(norm.item() for norm in norms)


def _clear_hidden(mask: Mask, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Zeros for the keys, and their values, that no query may see."""
    visible = mask.visible(key.shape[-2], key.device)
    if visible is None:
        return key, value
    return torch.where(visible[..., None], key, 0.0), torch.where(visible[..., None], value, 0.0)


def _move_hidden(mask: Mask, key: Float[Tensor, "*#lead key dim"]) -> Float[Tensor, "*#lead key dim"]:
    """Keys that no query may see put at the mean of the others, where they move no center, whatever they hold."""
    visible = mask.visible(key.shape[-2], key.device)
    if visible is None:
        return key
    wide = torch.promote_types(key.dtype, torch.float32)
    seen = torch.where(visible[..., None], key.detach(), 0.0).sum(-2, keepdim=True, dtype=wide)
    mean = seen / visible.sum(-1)[..., None, None].clamp_min(1)
    return torch.where(visible[..., None], key, mean.to(key.dtype))


def _find_exposed(parts: Parts, queries: int, broken: Bool[Tensor, "*#lead key"]) -> Bool[Tensor, "*#lead query"]:
    keys, found = broken.shape[-1], []
    for span in spans_of(parts, queries, keys, rows_per_block(broken.numel(), queries)):
        pairs = Pairs(queries, keys, rows=(span.start, span.stop), device=broken.device)
        seen = (parts.mask.allowed(pairs) & broken[..., None, :]).any(-1)
        found.append(seen.expand(*seen.shape[:-1], span.stop - span.start))
    exposed = torch.cat(found, dim=-1)
    if parts.normalizer.form == "sequential":  # a row follows from those before it
        return exposed.long().cumsum(-1) > 0
    return exposed
