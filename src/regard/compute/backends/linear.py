"""Linear attention: the products reassociated, so that no table of pairs is ever needed."""

import functools
import math
from typing import ClassVar

import torch

from regard.algebra.masks import Causal, Full, Mask
from regard.algebra.masks.composition import Intersection
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall, CallFacts, Parts
from regard.algebra.scores.base import as_dot
from regard.algebra.shapes import Bool, Tensor
from regard.compute.kernels import linear
from regard.compute.lowering.backend import Backend, BackendResult
from regard.compute.lowering.conditions import RANGE, UnsupportedReason, explain_weights_needed
from regard.compute.lowering.cost import PlanCost
from regard.compute.lowering.reasons import PartForms, Step


class LinearBackend(Backend):
    """Running sums of keys times values; a causal mask makes them follow the query."""

    name: ClassVar[str] = "linear"

    def run(self, call: AttentionCall) -> BackendResult:
        form = as_dot(call.parts.score).dot_form(call.query, call.key).fold_offsets(keep_row=True).fold_scale()
        allowed = find_allowed_keys(call.parts.mask, call.keys, call.query.device)
        attend = linear.attend_causal if call.parts.mask.causal and call.queries > 1 else linear.attend_full
        return BackendResult(attend(form.query, form.key, call.value, allowed).output)

    def explain_unsupported(self, parts: Parts, facts: CallFacts) -> UnsupportedReason:
        if parts.normalizer.form != "row-total":
            return "only the row total can be reassociated"
        if facts.hazard == "range" or parts.score.centers_keys:
            return RANGE if facts.hazard == "range" else "a sum over keys would lose the digits of the score"
        if parts.score.form != "dot" or parts.bias is not None:
            return "the score has no dot form" if parts.score.form != "dot" else "a bias would have to be a feature"
        if not self.accepts_mask(parts.mask):
            return "the mask is neither causal nor the same for all queries"
        return explain_weights_needed(parts, facts)

    def accepts_mask(self, mask: Mask) -> bool:
        if type(mask) is Intersection:
            return all(map(self.accepts_mask, mask.parts))
        return mask.columnwise or type(mask) is Causal

    def explain_choice(self, parts: Parts, facts: CallFacts) -> str | None:
        if self.explain_unsupported(parts, facts) is not None:
            return None
        return "the products can be reassociated, so that the cost is linear in the length"

    def estimate_cost(self, parts: Parts, facts: CallFacts) -> PlanCost:
        lead, size = math.prod(facts.lead), facts.dtype.itemsize
        products = lead * (facts.queries + facts.keys) * facts.dim * (facts.value + 1)
        table = lead * facts.queries * facts.keys * size
        return PlanCost(0, products, 0, lead * facts.dim * facts.value * size, table)

    def explain_mask(self, forms: PartForms) -> Step:
        return "running sums over chunks" if forms.causal else "zeroed keys", "totals follow it"


def find_allowed_keys(mask: Mask, keys: int, device: torch.device) -> Bool[Tensor, "*#lead key"] | None:
    """Return which keys are allowed to any query, causality apart; None if all are."""
    if type(mask) in (Full, Causal):
        return None
    if type(mask) is Intersection:
        tables = [find_allowed_keys(part, keys, device) for part in mask.parts]
        known = [allowed for allowed in tables if allowed is not None]
        return functools.reduce(torch.Tensor.__and__, known) if known else None
    return mask.allows(Pairs(1, keys, device=device)).squeeze(-2)
