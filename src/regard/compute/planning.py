"""From parts and facts to a plan: which backend computes them, in which dtype, and why."""

from typing import Literal, NamedTuple

import torch

from regard.algebra.parts import CallFacts, NumericalHazard, Parts
from regard.algebra.shapes import Tensor
from regard.compute.backends import BACKENDS
from regard.compute.kernels import few_queries, native
from regard.compute.kernels.native import tensor_memory
from regard.compute.lowering import gather
from regard.compute.lowering.precision import HALVES, choose_compute_dtype
from regard.compute.lowering.reasons import PartForms, collect_forms
from regard.errors import PlanError, format_message, wrong

BackendName = str  # a key of BACKENDS
AUTO: Literal["auto"] = "auto"
MOST_PLANS = 4096
PRECISION: dict[NumericalHazard, str] = {
    "none": "{own} has too few digits for the squares of this score",
    "digits": "{own} would lose digits: the terms of the score are much larger than the score",
    "range": "{own} would overflow or lose digits: the numbers differ too much in size",
}
STEEP = "{own} has too few digits for the gradients of steep weights"


class PlanStep(NamedTuple):
    """What becomes of one piece, and why."""

    piece: str
    becomes: str
    because: str


class Plan(NamedTuple):
    """Which backend computes an attention. The reasons are built when they are asked for."""

    backend: BackendName
    because: str
    precision: torch.dtype | None  # what it is computed in, if that is not the dtype of the tensors
    forms: PartForms
    facts: CallFacts

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        """Build what becomes of each piece."""
        forms, facts, backend = self.forms, self.facts, BACKENDS[self.backend]
        steps = {"score": backend.explain_score(forms, facts)}
        if forms.bias is not None:
            steps["bias"] = backend.explain_bias(forms)
        steps["mask"] = backend.explain_mask(forms) if forms.hides else ("none", "every pair is allowed")
        steps["normalizer"] = backend.explain_normalizer(forms)
        if forms.aggregate == "choice":
            steps["aggregate"] = "a pick from the weights of each row", "a hard aggregate needs them"
        if facts.dropout:
            steps["dropout"] = "noise addressed by pair", "a block recomputes what it drew and stores nothing"
        if self.precision is not None:
            name, own = (str(dtype).removeprefix("torch.") for dtype in (self.precision, facts.dtype))
            steep = facts.hazard == "none" and not forms.centers_keys
            steps["precision"] = name, (STEEP if steep else PRECISION[facts.hazard]).format(own=own)
        if facts.traced and backend.in_blocks:
            steps["backward"] = "stored, not recomputed", "the call is being traced by a compiler"
        return tuple(PlanStep(piece, *step) for piece, step in steps.items())

    def explain(self) -> str:
        """Return the plan in words, a line for each piece.

        >>> from regard import attend
        >>> print(attend(torch.eye(2), torch.eye(2), torch.eye(2)).plan.explain())
        backend sdpa, because it is a softmax of a dot product
          score: itself, because the factor is the kernel's own scale
          mask: none, because every pair is allowed
          normalizer: the kernel's softmax, because temperature is a scale
        """
        lines = [f"  {step.piece}: {step.becomes}, because {step.because}" for step in self.steps]
        if self.forms.causal and not self.facts.traced and self.facts.queries > self.facts.keys:
            empty = self.facts.queries - self.facts.keys
            lines.append(f"  note: the first {empty} queries see no key, because the last query is at the last key;")
            lines.append("        if the first query is at the first key, write Causal.from_first()")
        return "\n".join([f"backend {self.backend}, because {self.because}", *lines])


_plans: dict[object, Plan] = {}


def plan_call(
    parts: Parts,
    lead: tuple[int, ...],
    tensors: tuple[Tensor, Tensor, Tensor],
    dropout: float,
    backend: BackendName,
    hazard: NumericalHazard = "none",
) -> Plan:
    """Return the plan of a call, remembered: a decoder asks for the same one at every step."""
    facts = collect_facts(lead, *tensors, dropout, hazard)
    large = facts.queries * facts.keys >= gather.SMALLEST_TABLE
    if large and not facts.traced and gather.is_sparse(parts.mask, facts.queries, facts.keys):
        facts = facts._replace(sparse=True)
    if facts.traced:
        return make_plan(parts, facts, backend=backend)
    key = parts.plan_key, facts, backend
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = make_plan(parts, facts, backend=backend)
    return plan


def make_plan(parts: Parts, facts: CallFacts, *, backend: BackendName = AUTO) -> Plan:
    """Return the plan for these parts. A backend that is asked for by name and does not support them raises."""
    cancels = parts.score.centers_keys
    unreadable = (facts.traced and cancels) or (facts.mapped and facts.dtype == torch.float16)
    if unreadable and facts.hazard == "none":  # numbers that cannot be read may be the worst
        facts = facts._replace(hazard="range")
    chosen, because = _choose_backend(parts, facts, backend)
    steep = facts.grad and BACKENDS[chosen].widens_gradients(asked=backend != AUTO)
    grows = facts.hazard == "range" and parts.score.key_growth == "any"
    precision = choose_compute_dtype(facts.dtype, facts.hazard, cancels=cancels or grows, steep=steep)
    if facts.traced:  # its kernels take differences in float64 themselves, and what a function holds cannot be cast
        widened = steep and facts.dtype in HALVES and parts.score.key_growth != "any"
        precision = torch.float32 if widened else None
    return Plan(chosen, because, precision, collect_forms(parts, facts), facts)


def _choose_backend(parts: Parts, facts: CallFacts, name: BackendName) -> tuple[BackendName, str]:
    """Return the first backend that `auto` should take, or the one that was asked for, and why."""
    if name == AUTO:
        choices = ((known.name, known.explain_choice(parts, facts)) for known in BACKENDS.values())
        return next((chosen, because) for chosen, because in choices if because is not None)
    if name not in BACKENDS:
        raise wrong("backend", repr(name), f"one of {', '.join((AUTO, *BACKENDS))}", 'use "auto"')
    reason = BACKENDS[name].explain_unsupported(parts, facts)
    if reason is not None:
        fix = 'use backend="auto", which finds one that can'
        raise PlanError(format_message("backend", repr(name), f"one that can compute this: {reason}", fix))
    return name, "it was asked for"


def collect_facts(
    lead: tuple[int, ...], query: Tensor, key: Tensor, value: Tensor, dropout: float, hazard: NumericalHazard = "none"
) -> CallFacts:
    """Return the facts of a call: everything besides the parts that a plan depends on."""
    grad, traced = torch.is_grad_enabled(), torch.compiler.is_compiling()
    mapped, intercepted = not traced and tensor_memory.is_mapped(), not traced and tensor_memory.is_intercepted()
    if not (traced or grad) and query.shape[-2] <= few_queries.MOST_QUERIES:
        native.load_library(build=False)  # loads the library if it is cached: the backend for few queries needs it
    return CallFacts(
        lead,
        query.shape[-2],
        key.shape[-2],
        query.shape[-1],
        value.shape[-1],
        query.dtype,
        query.device.type,
        dropout > 0,
        grad,
        traced,
        mapped,
        "" if traced else native.describe_state(),
        hazard,
        intercepted,
    )
