"""What a plan costs: operations, and memory beyond inputs and output. Estimates by formula, not measurements."""

import math
from typing import NamedTuple

from regard.algebra.parts import Facts, Parts
from regard.compute.kernels.blocks import BLOCK, PIECE
from regard.compute.planning.plan import Backend
from regard.compute.planning.spans import LARGEST, SMALLEST


class Cost(NamedTuple):
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
            f"  about {size(self.memory)} beyond inputs and output; a table of the weights would be {size(self.table)}"
        )
        return "\n".join(lines)


def size(count: int) -> str:
    """Bytes in words.

    >>> size(3 * 2**20)
    '3.0 MB'
    """
    scales = [("GB", 2**30), ("MB", 2**20), ("kB", 2**10)]
    for unit, scale in scales:
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} bytes"


def cost_of(parts: Parts, facts: Facts, backend: Backend) -> Cost:
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
        return Cost(0, products, 0, lead * facts.dim * facts.value * facts.dtype.itemsize, table)
    products = pairs * (facts.value + (0 if hidden else facts.dim))
    return Cost(pairs, products, hidden, memory_of(facts, backend, pairs, table), table)


def memory_of(facts: Facts, backend: Backend, pairs: int, table: int) -> int:
    """Bytes beyond inputs and output."""
    if backend == "eager":
        return 2 * table
    if backend in ("sdpa", "few", "flex"):
        return math.prod(facts.lead) * facts.queries * 4
    return 3 * 4 * (pairs if pairs <= BLOCK else PIECE)
