"""Linear attention: the products reassociated, so that no table of pairs is ever needed."""

import functools

import torch

from regard.algebra.masks import Causal, Full, Mask
from regard.algebra.masks.composition import Intersection
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.algebra.scores.base import as_dot
from regard.algebra.shapes import Bool, Tensor
from regard.compute.backends.result import BackendResult
from regard.compute.kernels import linear


def run(call: AttentionCall) -> BackendResult:
    """Running sums of keys times values; a causal mask makes them follow the query."""
    form = as_dot(call.parts.score).dot_form(call.query, call.key).fold_offsets(keep_row=True).fold_scale()
    allowed = find_allowed_keys(call.parts.mask, call.keys, call.query.device)
    if call.parts.mask.causal and call.queries > 1:
        return BackendResult(linear.attend_causal(form.query, form.key, call.value, allowed).output)
    return BackendResult(linear.attend_full(form.query, form.key, call.value, allowed).output)


def find_allowed_keys(mask: Mask, keys: int, device: torch.device) -> Bool[Tensor, "*#lead key"] | None:
    """Which keys are allowed at all, causality apart."""
    if type(mask) in (Full, Causal):
        return None
    if type(mask) is Intersection:
        found = [find_allowed_keys(part, keys, device) for part in mask.parts]
        known = [allowed for allowed in found if allowed is not None]
        return functools.reduce(torch.Tensor.__and__, known) if known else None
    return mask.allows(Pairs(1, keys, device=device)).squeeze(-2)
