"""`regard explain`: what a mechanism is, how it is computed, and what that costs."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console


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
    "Width of the values; that of the keys where it is not given."
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
    """Say what a mechanism is, how it is computed and what that costs.

    Parameters
    ----------
    score
        A score of the catalog, such as additive.
    bias
        A bias of the catalog.
    mask
        A mask of the catalog.
    normalizer
        A normalizer of the catalog.
    reading
        A reading of the catalog.
    """
    from regard.cli.call_plan import plan_call
    from regard.cli.descriptions import describe_part

    console = Console(highlight=False, soft_wrap=True)
    names = {"score": score, "bias": bias, "mask": mask, "normalizer": normalizer, "aggregate": aggregate}
    found = [describe_part(family, name) for family, name in names.items()]
    planned = plan_call(names, call or CallOptions())
    for part in found:
        if part.family == "score" or part.name not in ("none", "full", "softmax", "soft"):
            console.print(f"[bold]{part.family} {part.name}[/bold] ({part.part})\n{part.text}\n", markup=True)
    console.print("[bold]plan[/bold]")
    console.print(planned.plan.explain(), markup=False)
    console.print("\n[bold]cost[/bold]")
    console.print(planned.cost.explain(), markup=False)
