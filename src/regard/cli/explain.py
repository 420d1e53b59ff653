"""`regard explain`: what a mechanism is, how it is computed, and what that costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.output import open_console
from regard.errors import find_nearest, wrong

if TYPE_CHECKING:
    from regard.algebra.parts import CallFacts
    from regard.cli.descriptions import CatalogEntry
    from regard.compute.lowering.cost import PlanCost
    from regard.compute.planning import Plan

PLAIN = {"bias": "none", "mask": "full", "normalizer": "softmax", "aggregate": "soft"}
DTYPES = ("float32", "float64", "bfloat16", "float16")


@dataclass
class CallOptions:
    """The call to plan for."""

    queries: int = 1024
    "How many queries."
    keys: int = 1024
    "How many keys."
    dim: int = 64
    "Width of query and key."
    value: int | None = None
    "Width of the values; that of the keys if it is not given."
    batch: int = 1
    "How many sequences."
    heads: int = 8
    "How many heads."
    dtype: str = "float32"
    "float32, float64, bfloat16 or float16."
    dropout: float = 0.0
    "Rate of dropout on the weights."
    backend: str = "auto"
    "Ask for a backend by name."


def explain(
    score: str,
    *,
    bias: str = "none",
    mask: str = "full",
    normalizer: str = "softmax",
    aggregate: str = "soft",
    call: Annotated[CallOptions | None, Parameter(name="*")] = None,
) -> None:
    """Say what a mechanism is, how it is computed and what that costs; or what a layer, model or task is.

    Parameters
    ----------
    score
        A score, such as additive, by any name it goes by (bahdanau, 加性); another part, layer, model or task.
    bias
        A bias of the catalog.
    mask
        A mask of the catalog.
    normalizer
        A normalizer of the catalog.
    aggregate
        An aggregate of the catalog.
    """
    from regard.cli.descriptions import find_entries

    names = {"score": score, "bias": bias, "mask": mask, "normalizer": normalizer, "aggregate": aggregate}
    others = find_entries(score)
    if not is_part(score) and others and (call or any(names[family] != name for family, name in PLAIN.items())):
        raise wrong(score, f"flags of a call for a {others[0].family}", "a score, or no flags", "leave the flags out")
    for entry in others:
        explain_entry(entry)
    if not is_part(score) and not others:
        raise wrong("name", repr(score), "a name that regard list shows", f"write {find_meant(score)}")
    if is_part(score):
        explain_call(names, call or CallOptions())


def find_meant(name: str) -> str:
    """Return the name of a part, layer, model or task that is nearest to what was typed, of all that they go by."""
    from regard.algebra.catalog import FAMILIES, fold_name, list_names
    from regard.cli import inventory

    known = [one for family in FAMILIES for one in list_names(family)]
    known += [
        one
        for entries in inventory.FAMILIES.values()
        for own, entry in entries.items()
        for one in (own, *entry.aliases.lower().split())
    ]
    return find_nearest(fold_name(name), known)


def is_part(name: str) -> bool:
    """Return whether a part of the algebra goes by this name."""
    from regard.algebra.catalog import FAMILIES, fold_name, list_names

    return any(fold_name(name) in list_names(family) for family in FAMILIES)


def explain_call(names: dict[str, str], call: CallOptions) -> None:
    """Print the parts of a call, its plan and its cost."""
    from regard.algebra.catalog import find_family
    from regard.cli.descriptions import describe_part

    asked = family = find_family(names["score"], "score")
    if family != "score":  # the name of another part says all: it is explained with the default score
        names = names | {"score": "scaled-dot", family: names["score"]}
    entries = [describe_part(family, name) for family, name in names.items()]
    plan, cost = plan_call(names, call)
    for part in sorted(entries, key=lambda part: part.family != asked):
        if part.family == asked or part.name != (PLAIN | {"score": "scaled-dot"}).get(part.family):
            explain_entry(part)
    console = open_console()
    console.print("[bold]plan[/bold]")
    console.print(plan.explain(), markup=False)
    console.print("\n[bold]cost[/bold]")
    console.print(cost.explain(), markup=False)


def explain_entry(entry: "CatalogEntry") -> None:
    """Print what an entry of the catalog is, in Chinese and English."""
    from regard.cli.formulas import render_formulas

    console = open_console()
    console.print(f"[bold]{entry.family} {entry.name}[/bold] ({entry.part})")
    for text in (entry.chinese, *join_lines(render_formulas(entry.text))):
        console.print(text, markup=False)
    console.print()


def join_lines(text: str) -> list[str]:
    """Return the paragraphs of a docstring, each on one line, with an empty line before it: terminals break lines.

    >>> join_lines("One\\nline.\\n\\nTwo.")
    ['\\nOne line.', '\\nTwo.']
    """
    return [f"\n{' '.join(part.splitlines())}" for part in text.split("\n\n") if part]


def plan_call(names: Mapping[str, str], call: CallOptions) -> "tuple[Plan, PlanCost]":
    """Return the plan of a call of this size with these parts of the catalog, and its cost."""
    from regard.algebra import catalog
    from regard.algebra.parts import Parts
    from regard.compute.backends import BACKENDS
    from regard.compute.planning import make_plan

    facts = build_facts(call)
    sizes = catalog.Sizes(call.dim, call.dim, facts.value, facts.lead, call.queries, call.keys)
    builders = {family: catalog.find(family, name) for family, name in names.items()}
    parts = Parts(*(build(sizes) for build in builders.values()))
    plan = make_plan(parts, facts, backend=call.backend)
    return plan, BACKENDS[plan.backend].estimate_cost(parts, facts)


def build_facts(call: CallOptions) -> "CallFacts":
    """Return the facts of a call; raise if a number is out of range."""
    import torch

    from regard.algebra.parts import CallFacts

    value = call.dim if call.value is None else call.value
    for name in ("queries", "keys", "dim", "value", "batch", "heads"):
        size = value if name == "value" else getattr(call, name)
        if size < 1:
            raise wrong(f"--{name}", size, "at least 1", f"write --{name} 1")
    if call.dtype not in DTYPES:
        raise wrong("--dtype", repr(call.dtype), f"one of {', '.join(DTYPES)}", "write float32")
    if not 0 <= call.dropout < 1:
        raise wrong("--dropout", call.dropout, "a rate from 0 to below 1", "write --dropout 0.1")
    lead, dtype = (call.batch, call.heads), getattr(torch, call.dtype)
    return CallFacts(lead, call.queries, call.keys, call.dim, value, dtype, "cpu", call.dropout > 0, True)
