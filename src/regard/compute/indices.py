"""Which queries an index into weights needs."""

from typing import Any

from regard.errors import wrong


def split_index(index: Any, shape: tuple[int, ...]) -> tuple[tuple[int, int], Any]:
    """Return the queries that an index needs, and the index of the same weights in a table of only these."""
    parts, queries = list(index) if isinstance(index, tuple) else [index], shape[-2]
    if not all(type(part) is int or isinstance(part, slice) or part is Ellipsis for part in parts):
        return (0, queries), index
    if parts.count(Ellipsis) == 1:
        place = parts.index(Ellipsis)
        parts[place : place + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    place = len(shape) - 2
    if not place < len(parts) <= len(shape) or Ellipsis in parts:
        return (0, queries), index  # all queries, or too many axes, for which torch raises
    chosen = parts[place]
    found = range(queries)[chosen] if isinstance(chosen, slice) else (range(queries)[chosen],)
    if not found or (isinstance(chosen, slice) and found.step != 1):  # type: ignore[union-attr]
        return (0, queries), index
    parts[place] = slice(None) if isinstance(chosen, slice) else 0
    return (found[0], found[-1] + 1), tuple(parts)


def check_step(name: str, part: slice) -> slice:
    """Return a slice of a tile; raise if it leaves some out."""
    if part.step not in (None, 1):
        raise wrong(name, f"a step of {part.step}", "a step of 1", "take the tile and index it")
    return part
