"""The plan and the cost of a call that is described, not made."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, cast, runtime_checkable

import torch

from regard.algebra import catalog
from regard.algebra.catalog import Sizes
from regard.algebra.parts import CallFacts, Parts
from regard.compute.planning import Backend, Plan, make_plan
from regard.compute.planning.cost import PlanCost, estimate_cost
from regard.errors import wrong

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@runtime_checkable
class CallDescription(Protocol):
    """The sizes and circumstances of a call, in plain numbers and words."""

    queries: int
    keys: int
    dim: int
    value: int | None
    batch: int
    heads: int
    dtype: str
    dropout: float
    backend: str


class CostedPlan(NamedTuple):
    """A plan with its cost."""

    plan: Plan
    cost: PlanCost


def plan_call(names: Mapping[str, str], call: CallDescription) -> CostedPlan:
    """The plan for these parts of the catalog and a call of this size."""
    facts = build_facts(call)
    sizes = Sizes(call.dim, call.dim, facts.value, facts.lead, call.queries, call.keys)
    parts = Parts(*(catalog.find(family, name)(sizes) for family, name in names.items()))  # type: ignore[arg-type]
    plan = make_plan(parts, facts, backend=cast(Backend, call.backend))
    return CostedPlan(plan, estimate_cost(parts, facts, plan.backend))


def build_facts(call: CallDescription) -> CallFacts:
    """The facts, or a sentence about the number that cannot be."""
    for name in ("queries", "keys", "dim", "value", "batch", "heads"):
        if (getattr(call, name) or 0) < 1 and (name, call.value) != ("value", None):
            raise wrong(f"--{name}", getattr(call, name), "at least 1", f"write --{name} 1")
    if call.dtype not in DTYPES:
        raise wrong("--dtype", repr(call.dtype), f"one of {', '.join(DTYPES)}", "write float32")
    if not 0 <= call.dropout < 1:
        raise wrong("--dropout", call.dropout, "a rate from 0 to below 1", "write --dropout 0.1")
    value = call.dim if call.value is None else call.value
    lead, dropped = (call.batch, call.heads), call.dropout > 0
    return CallFacts(lead, call.queries, call.keys, call.dim, value, DTYPES[call.dtype], "cpu", dropped, True)
