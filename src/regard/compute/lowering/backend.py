"""What a backend is: one object that knows everything about one way to compute attention."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from regard.algebra.masks import Mask
from regard.algebra.parts import AttentionCall, CallFacts, Parts
from regard.algebra.scores.base import DotForm
from regard.algebra.shapes import Float, Tensor
from regard.compute.lowering import reasons
from regard.compute.lowering.conditions import UnsupportedReason
from regard.compute.lowering.cost import PlanCost
from regard.compute.lowering.reasons import PartForms, Step
from regard.compute.lowering.spans import BLOCK, LARGEST, PIECE, SMALLEST


class RowTotals(NamedTuple):
    """What a fused kernel left behind: any weight is exp(score + bias − total)."""

    form: DotForm
    total: Float[Tensor, "*lead query"]


class BackendResult(NamedTuple):
    """The output, the log-probability of choices, and the row totals from which a fused kernel's weights follow."""

    output: Float[Tensor, "*lead query value"]
    log_prob: Float[Tensor, "*lead query"] | None = None
    form: DotForm | None = None
    total: Float[Tensor, "*lead query"] | None = None
    lost_digits: bool = False  # the result is not exact enough: the call has to be planned again


class Backend(ABC):
    """One way to compute attention. The planner and the operator ask it; they know no backend by name.

    To add one, write a module in `compute/backends` and put its object on the list there.
    """

    name: ClassVar[str]
    has_backward: ClassVar[bool] = True  # False: inference only
    reads_hidden_keys: ClassVar[bool] = True  # so that NaN behind a mask must be removed first (`shield`)
    sums_half_in_float32: ClassVar[bool] = False  # so that products of float16 may be large
    in_blocks: ClassVar[bool] = False  # blocks of queries, each with the range of keys that the mask leaves it

    @abstractmethod
    def run(self, call: AttentionCall) -> BackendResult:
        """Compute the call."""

    @abstractmethod
    def explain_unsupported(self, parts: Parts, facts: CallFacts) -> UnsupportedReason:
        """Return why it cannot compute these parts; None if it can."""

    def accepts_mask(self, mask: Mask) -> bool:
        """Return whether it can follow this mask."""
        return True

    def explain_choice(self, parts: Parts, facts: CallFacts) -> str | None:
        """Return why `auto` should take it; None to leave the call to the backends after it on the list."""
        return None

    def widens_gradients(self, *, asked: bool) -> bool:
        """Return whether calls of half precision that want gradients are computed in float32, and rounded once.

        `asked`: it was asked for by name.
        """
        return False

    def estimate_cost(self, parts: Parts, facts: CallFacts) -> PlanCost:
        """Estimate the cost of one forward pass."""
        lead, width, keys = math.prod(facts.lead), parts.mask.width, facts.keys
        if width is not None and self.in_blocks:
            keys = min(keys, width + min(LARGEST, max(SMALLEST, width)))
        pairs = lead * facts.queries * keys
        hidden = pairs * facts.dim if parts.score.form == "additive" else 0
        products = pairs * (facts.value + (0 if hidden else facts.dim))
        table = lead * facts.queries * facts.keys * facts.dtype.itemsize
        return PlanCost(pairs, products, hidden, self.estimate_memory(facts, pairs, table), table)

    def estimate_memory(self, facts: CallFacts, pairs: int, table: int) -> int:
        """Estimate the bytes beyond inputs and output; `table` has those of all weights."""
        if self.in_blocks:
            return 3 * 4 * (pairs if pairs <= BLOCK else PIECE)
        return math.prod(facts.lead) * facts.queries * 4

    def explain_score(self, forms: PartForms, facts: CallFacts) -> Step:
        """Return what becomes of the score, and why."""
        return reasons.explain_score(forms, facts)

    def explain_bias(self, forms: PartForms) -> Step:
        """Return what becomes of the bias, and why."""
        return reasons.explain_bias(forms)

    def explain_mask(self, forms: PartForms) -> Step:
        """Return what becomes of a mask that hides something, and why."""
        if self.in_blocks and forms.sparse:
            return "the keys that a block of queries may see, gathered", "others are never read"
        if self.in_blocks:
            return "a range of keys for each block of queries", "keys outside it are never read"
        return reasons.explain_mask(forms)

    def explain_normalizer(self, forms: PartForms) -> Step:
        """Return what becomes of the normalizer, and why."""
        return reasons.NORMALIZERS[forms.normalizer]
