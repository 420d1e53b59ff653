"""How masks compose: intersection, union and complement."""

import functools
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from regard.algebra.masks.base import Mask
from regard.algebra.pairs import Pairs, RowBlocks
from regard.algebra.shapes import Allowed, Bool, Int, Tensor


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompositeMask(Mask):
    """Several masks joined to one. Nothing here recurses, because thousands may be joined."""

    parts: tuple[Mask, ...]
    negates: ClassVar[bool] = False

    def join_tables(self, left: Tensor, right: Tensor) -> Tensor:
        """Return what is allowed, given what two parts allow."""
        raise NotImplementedError

    def join_causal(self, left: bool, right: bool) -> bool:
        """Return whether the mask is causal, given whether two parts are."""
        raise NotImplementedError

    def join_widths(self, left: int | None, right: int | None) -> int | None:
        """Return the most keys that one query may see, given those of two parts."""
        raise NotImplementedError

    def join_spans(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        """Return a range that has every allowed key, given those of two parts."""
        raise NotImplementedError

    def allows(self, pairs: Pairs) -> Allowed:
        found: Allowed = self._fold(
            lambda part: part.allows(pairs),
            lambda joined, left, right: joined.join_tables(left, right),
            lambda joined, table: ~table if joined.negates else table,
        )
        return found

    @property
    def plan_key(self) -> Hashable:
        # Flat, with the type that joins them behind the parts, because nested tuples are compared by recursion.
        return tuple(
            self._fold_lists(lambda part: part.plan_key, lambda joined, keys: [*keys, (type(joined), len(keys))])
        )

    @property
    def causal(self) -> bool:
        found: bool = self._fold(
            lambda part: part.causal,
            lambda joined, left, right: joined.join_causal(left, right),
            lambda joined, causal: causal and not joined.negates,
        )
        return found

    @property
    def columnwise(self) -> bool:
        return all(part.columnwise for part in self.leaves())

    @property
    def width(self) -> int | None:
        found: int | None = self._fold(
            lambda part: part.width,
            lambda joined, left, right: joined.join_widths(left, right),
            lambda joined, width: None if joined.negates else width,
        )
        return found

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        found: tuple[int, int] = self._fold(
            lambda part: part.span(start, stop, queries, keys),
            lambda joined, left, right: joined.join_spans(left, right),
            lambda joined, span: (0, keys) if joined.negates else span,
        )
        return found

    def cover(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        return self._cover_both(blocks)[0]

    def cover_fully(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        return self._cover_both(blocks)[1]

    def _cover_both(self, blocks: RowBlocks) -> tuple[Tensor, Tensor]:
        """Return the keys that some queries of a block see, and those that all see; a complement swaps the two."""
        found: tuple[Tensor, Tensor] = self._fold(
            lambda part: (part.cover(blocks), part.cover_fully(blocks)),
            lambda joined, left, right: tuple(map(joined.join_tables, left, right)),
            lambda joined, both: (~both[1], ~both[0]) if joined.negates else both,
        )
        return found

    def segment_queries(self, queries: int, keys: int) -> Int[Tensor, " query"] | None:
        found = (part.segment_queries(queries, keys) for part in self.leaves())
        return next((numbers for numbers in found if numbers is not None), None)

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        for part in self.leaves():
            part.check(lead, queries, keys)

    def add_head_axis(self) -> Mask:
        return self.map_leaves(lambda part: part.add_head_axis())

    def leaves(self) -> list[Mask]:
        return self._fold_lists(lambda part: part, lambda joined, parts: parts)

    def map_leaves(self, change: Callable[[Mask], Mask]) -> Mask:
        found: Mask = self._fold_lists(change, lambda joined, parts: [type(joined)(tuple(parts))])[0]
        return found

    def __repr__(self) -> str:
        found: str = self._fold_lists(repr, lambda joined, parts: [joined.format_parts(parts)])[0]
        return found

    @abstractmethod
    def format_parts(self, parts: list[str]) -> str:
        """Return the mask as text, given its parts as text."""

    def _fold_lists(self, leaf: Callable[[Mask], Any], last: Callable[["CompositeMask", Any], Any]) -> list[Any]:
        values: list[Any] = self._fold(lambda part: [leaf(part)], lambda joined, *both: _extend(*both), last)
        return values

    def _fold(
        self,
        leaf: Callable[[Mask], Any],
        pair: Callable[["CompositeMask", Any, Any], Any],
        last: Callable[["CompositeMask", Any], Any],
    ) -> Any:
        """Return the values of the leaves, joined two at a time by `pair`; `last` finishes each composite mask."""
        above: list[tuple[CompositeMask, Iterator[Mask]]] = [(self, iter(self.parts))]
        found: list[list[Any]] = [[]]
        while above:
            joined, parts = above[-1]
            part = next(parts, None)
            if type(part) in COMPOSITES:  # not a subclass, which may have its own definition
                above.append((part, iter(part.parts)))  # type: ignore[arg-type, union-attr]
                found.append([])
                continue
            if part is None:
                above.pop()
                value = last(joined, found.pop()[0])
            else:
                value = leaf(part)
            if above:
                found[-1] = [pair(above[-1][0], found[-1][0], value) if found[-1] else value]
        return value


class Intersection(CompositeMask):
    """Allows what all of its parts allow."""

    __slots__ = ()

    def join_tables(self, left: Tensor, right: Tensor) -> Tensor:
        return left & right

    def join_causal(self, left: bool, right: bool) -> bool:
        return left or right

    def join_widths(self, left: int | None, right: int | None) -> int | None:
        return right if left is None else left if right is None else min(left, right)

    def join_spans(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        first = max(left[0], right[0])
        return first, max(first, min(left[1], right[1]))

    def find_visible_keys(self, keys: int, device: torch.device | str = "cpu") -> Bool[Tensor, "..."] | None:
        tables = [part.find_visible_keys(keys, device) for part in self.parts]
        known = [table for table in tables if table is not None]
        return functools.reduce(torch.Tensor.__and__, known) if known else None

    def format_parts(self, parts: list[str]) -> str:
        return f"({' & '.join(parts)})"


class MaskUnion(CompositeMask):
    """Allows what any of its parts allows."""

    __slots__ = ()

    def join_tables(self, left: Tensor, right: Tensor) -> Tensor:
        return left | right

    def join_causal(self, left: bool, right: bool) -> bool:
        return left and right

    def join_widths(self, left: int | None, right: int | None) -> int | None:
        return None

    def join_spans(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        return min(left[0], right[0]), max(left[1], right[1])

    def format_parts(self, parts: list[str]) -> str:
        return f"({' | '.join(parts)})"


class Complement(CompositeMask):
    """Allows what its part does not."""

    __slots__ = ()
    negates: ClassVar[bool] = True

    def format_parts(self, parts: list[str]) -> str:
        return f"~{parts[0]}"


COMPOSITES = (Intersection, MaskUnion, Complement)


def combine_masks(kind: type[CompositeMask], first: Mask, second: Mask) -> Mask:
    """Return both as one mask of that kind, with the parts of masks of that kind instead of the masks."""
    parts = [part.parts if type(part) is kind else (part,) for part in (first, second)]
    return kind((*parts[0], *parts[1]))


def _extend(left: list[Any], right: list[Any]) -> list[Any]:
    left.extend(right)
    return left
