"""What a plan costs: operations, and memory beyond inputs and output. Estimates by formula, not measurements."""

from typing import NamedTuple


class PlanCost(NamedTuple):
    """Multiply-adds of the two products, evaluations of the score's own function, and bytes held at once."""

    pairs: int
    products: int
    hidden: int
    memory: int
    table: int

    def explain(self) -> str:
        """Return the cost in words, beside the table that is not written out."""
        lines = [f"  {self.pairs:,} pairs are scored, with {self.products:,} multiply-adds"]
        if self.hidden:
            lines.append(f"  {self.hidden:,} hidden units are evaluated")
        memory, table = format_bytes(self.memory), format_bytes(self.table)
        lines.append(f"  about {memory} beyond inputs and output; a table of the weights would be {table}")
        return "\n".join(lines)


def format_bytes(count: int) -> str:
    """Return a number of bytes in words.

    >>> format_bytes(3 * 2**20)
    '3.0 MB'
    """
    for unit, scale in (("GB", 2**30), ("MB", 2**20), ("kB", 2**10)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} bytes"
