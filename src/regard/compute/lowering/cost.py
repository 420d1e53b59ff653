"""What a plan costs: operations, and memory beyond inputs and output. Estimates by formula, not measurements."""

import math
from typing import NamedTuple

from regard.algebra.parts import CallFacts, Parts
from regard.compute.kernels.blocks import BLOCK, PIECE
from regard.compute.planning.plan import Backend
from regard.compute.lowering.spans import LARGEST, SMALLEST


class PlanCost(NamedTuple):
    """Multiply-adds of the two products, evaluations of the score's own function, and bytes held at once."""

    pairs: int
    products: int
    hidden: int
    memory: int
    table: int

    def explain(self) -> str:
        """The cost in words, beside the table that is not written out."""
        lines = [f"  {self.pairs:,} pairs are scored, with {self.products:,} multiply-adds"]
        if self.hidden:
            lines.append(f"  {self.hidden:,} hidden units are evaluated, none of them by tanh")
        lines.append(
            f"  about {format_bytes(self.memory)} beyond inputs and output; a table of the weights would be {format_bytes(self.table)}"
        )
        return "\n".join(lines)


def format_bytes(count: int) -> str:
    """Bytes in words.

    >>> format_bytes(3 * 2**20)
    '3.0 MB'
    """
    scales = [("GB", 2**30), ("MB", 2**20), ("kB", 2**10)]
    for unit, scale in scales:
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} bytes"


def estimate_cost(parts: Parts, facts: CallFacts, backend: Backend) -> PlanCost:
    """The cost of one forward pass."""
    lead, width = math.prod(facts.lead), parts.mask.width
    seen = facts.keys
    if width is not None and backend in ("local", "stream", "rows"):
        seen = min(facts.keys, width + min(LARGEST, max(SMALLEST, width)))
    pairs = lead * facts.queries * seen
    hidden = pairs * facts.dim if parts.score.form == "additive" else 0
    table = lead * facts.queries * facts.keys * facts.dtype.itemsize
    if backend == "linear":
        products = lead * (facts.queries + facts.keys) * facts.dim * (facts.value + 1)
        return PlanCost(0, products, 0, lead * facts.dim * facts.value * facts.dtype.itemsize, table)
    products = pairs * (facts.value + (0 if hidden else facts.dim))
    return PlanCost(pairs, products, hidden, estimate_memory(facts, backend, pairs, table), table)


def estimate_memory(facts: CallFacts, backend: Backend, pairs: int, table: int) -> int:
    """Bytes beyond inputs and output."""
    if backend == "eager":
        return 2 * table
    if backend in ("sdpa", "few_queries", "flex"):
        return math.prod(facts.lead) * facts.queries * 4
    return 3 * 4 * (pairs if pairs <= BLOCK else PIECE)
