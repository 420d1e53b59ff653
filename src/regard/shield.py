"""A NaN or inf in a key or value must not reach a query that may not see it: 0 × NaN is NaN in every kernel."""

import math
from typing import NamedTuple

import torch

from regard.lowering.spans import spans_of
from regard.masks import Full, Mask
from regard.numerics.blocks import rows_per_block
from regard.pairs import Pairs
from regard.parts import Parts
from regard.shapes import Bool, Float, Tensor


class Shielded(NamedTuple):
    """Keys and values that are all finite, and which queries may see one that was not (None: none was)."""

    key: Float[Tensor, "*#lead key dim"]
    value: Float[Tensor, "*#lead key value"]
    exposed: Bool[Tensor, "*#lead query"] | None = None


def shield(parts: Parts, queries: int, key: Tensor, value: Tensor) -> Shielded:
    """Keys and values with the broken ones set to zero, where a mask hides any."""
    if type(parts.mask) is Full or key.is_meta:
        return Shielded(key, value)
    if parts.score.centers_keys:
        key = _settled(parts.mask, key)
    if not torch.compiler.is_compiling() and _finite(key, value):
        return Shielded(key, value)
    sound = torch.isfinite(key).all(-1) & torch.isfinite(value).all(-1)
    clean, content = torch.where(sound[..., None], key, 0.0), torch.where(sound[..., None], value, 0.0)
    return Shielded(clean, content, _exposed(parts, queries, ~sound))


def _finite(key: Tensor, value: Tensor) -> bool:
    """One pass over each. A sum that overflows is a false alarm, which costs time and no more."""
    wide = torch.float32 if key.dtype in (torch.float16, torch.bfloat16) else None
    return math.isfinite((key.detach().sum(dtype=wide) + value.detach().sum(dtype=wide)).item())


def _settled(mask: Mask, key: Float[Tensor, "*#lead key dim"]) -> Float[Tensor, "*#lead key dim"]:
    """Keys that no query may see put at the mean of the others, where they move no center, whatever they hold."""
    visible = mask.visible(key.shape[-2], key.device)
    if visible is None:
        return key
    wide = torch.promote_types(key.dtype, torch.float32)
    seen = torch.where(visible[..., None], key.detach(), 0.0).sum(-2, keepdim=True, dtype=wide)
    mean = seen / visible.sum(-1)[..., None, None].clamp_min(1)
    return torch.where(visible[..., None], key, mean.to(key.dtype))


def _exposed(parts: Parts, queries: int, broken: Bool[Tensor, "*#lead key"]) -> Bool[Tensor, "*#lead query"]:
    keys, found = broken.shape[-1], []
    for span in spans_of(parts, queries, keys, rows_per_block(broken.numel(), queries)):
        pairs = Pairs(queries, keys, rows=(span.start, span.stop), device=broken.device)
        seen = (parts.mask.allowed(pairs) & broken[..., None, :]).any(-1)
        found.append(seen.expand(*seen.shape[:-1], span.stop - span.start))
    return torch.cat(found, dim=-1)
