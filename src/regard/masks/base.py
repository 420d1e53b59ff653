"""What every mask can do, and how masks compose."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import torch

from regard.errors import wrong, wrong_kind
from regard.pairs import Pairs
from regard.shapes import Allowed, Bool, Tensor, check_own_lead, describe, fits
from regard.terms import drop_claims, has_new_definition

CLAIMS = ("causal", "columnwise", "width", "free", "visible", "span")


class Mask(ABC):
    """Which pairs may attend; `&`, `|` and `~` compose.

    >>> from regard.masks import Causal, Lengths
    >>> (Causal() & Lengths(torch.tensor(2))).table(2, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 0]], dtype=torch.int32)

    `allowed` is the definition; the other properties are claims that make it fast. A subclass that overrides
    `allowed` keeps none of its parent's claims unless it makes them itself.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "allowed"):
            drop_claims(cls, {name: vars(Mask)[name] for name in CLAIMS})

    @abstractmethod
    def allowed(self, pairs: Pairs) -> Allowed:
        """True where the pair may attend, in a shape that broadcasts to `(*lead, row, column)`."""

    @property
    def key(self) -> Hashable:
        """What the plan may depend on: no tensor, no content. The type itself: two may share a name."""
        return (type(self),)

    @property
    def causal(self) -> bool:
        """Whether no query ever sees a key after its own position."""
        return False

    @property
    def columnwise(self) -> bool:
        """Whether a key is allowed to all queries or to none."""
        return False

    @property
    def width(self) -> int | None:
        """The most keys that one query may see, where that is known without looking at any tensor."""
        return None

    def free(self, queries: int) -> bool:
        """Whether so many queries may all see every key, where that is known without looking at any tensor."""
        return False

    def visible(self, keys: int, device: torch.device | str = "cpu") -> Bool[Tensor, "..."] | None:
        """Which keys `(*lead, keys)` any query may see; None where that is all of them, or not known at once."""
        return self.allowed(Pairs(1, keys, device=device)).squeeze(-2) if self.columnwise else None

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        """A range of keys that holds every key allowed to the queries `start … stop - 1`."""
        return 0, keys

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:  # noqa: B027
        """Raise where this mask does not fit a table of that size. Any mask fits unless it says otherwise."""

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it is made of, those of masks that it joins too."""
        held: list[object] = []
        for mask in self.leaves():
            names = [field.name for field in fields(mask)] if is_dataclass(mask) else list(vars(mask))
            held += [getattr(mask, name) for name in names]
        return tuple(part for part in held if isinstance(part, Tensor))

    def over_heads(self) -> "Mask":
        """The same mask with one more lead axis, behind the others, for heads to broadcast over."""
        return self

    @property
    def lead(self) -> tuple[int, ...]:
        """The lead axes of its own tensors; none where it has no tensors."""
        return ()

    def leaves(self) -> "list[Mask]":
        """The masks that it joins; itself, where it joins none."""
        return [self]

    def replaced(self, change: "Callable[[Mask], Mask]") -> "Mask":
        """The same with each mask that it joins changed."""
        return change(self)

    def table(self, queries: int, keys: int, *, device: torch.device | str = "cpu") -> Bool[Tensor, "..."]:
        """All of it, as a tensor `(*lead, queries, keys)`."""
        allowed = self.allowed(Pairs(queries, keys, device=device))
        return allowed.expand(*allowed.shape[:-2], queries, keys)

    def __and__(self, other: "Mask") -> "Mask":
        return join(Both, self, as_mask(other))

    def __or__(self, other: "Mask") -> "Mask":
        return join(Either, self, as_mask(other))

    def __invert__(self) -> "Mask":
        return Opposite((self,))

    @staticmethod
    def keep(table: Bool[Tensor, "..."]) -> "Mask":
        """A bool tensor whose True means *may attend* (scaled_dot_product_attention, Keras)."""
        return Table(table)

    @staticmethod
    def drop(table: Bool[Tensor, "..."]) -> "Mask":
        """A bool tensor whose True means *must not attend* (nn.MultiheadAttention, nn.Transformer)."""
        if not isinstance(table, Tensor) or table.dtype != torch.bool:
            raise wrong_kind("table", describe(table), "a bool tensor", "write Mask.drop(tensor.bool())")
        return Table(~table)

    @staticmethod
    def keep_keys(real: Bool[Tensor, "*lead key"]) -> "Mask":
        """A padding mask `(batch, keys)`, or `(*lead, keys)`, whose True means *is real* (AllenNLP, Keras).

        >>> Mask.keep_keys(torch.tensor([[True, True, False]])).table(1, 3).int()
        tensor([[[1, 1, 0]]], dtype=torch.int32)
        """
        return _keys("real", real, "keep_keys", negate=False)

    @staticmethod
    def drop_keys(pad: Bool[Tensor, "*lead key"]) -> "Mask":
        """A padding mask `(batch, keys)`, or `(*lead, keys)`, whose True means *is padding* (nn.MultiheadAttention)."""
        return _keys("pad", pad, "drop_keys", negate=True)


def _keys(name: str, keys: Tensor, word: str, *, negate: bool) -> "Mask":
    if not isinstance(keys, Tensor) or keys.dtype != torch.bool:
        raise wrong_kind(name, describe(keys), "a bool tensor", f"write Mask.{word}(tensor.bool())")
    if not keys.dim():
        raise wrong(name, describe(keys), "at least (keys,)", "give one cell for each key")
    return Table((~keys if negate else keys).unsqueeze(-2))


def as_mask(mask: object) -> Mask:
    """The mask itself; a bare tensor is refused, because half of the field reads True the other way."""
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        fix = "write Mask.keep(tensor) if True means may attend, Mask.drop(tensor) if True means padding"
        raise wrong_kind("mask", describe(mask), "a Mask, whose polarity is in its type", fix)
    raise wrong_kind("mask", describe(mask), "a Mask", "write Full(), Causal(), Lengths(tensor) or Mask.keep(tensor)")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Joined(Mask):
    """Several masks as one. What it is asked is found without recursion, because thousands may be joined."""

    parts: tuple[Mask, ...]
    negates: ClassVar[bool] = False

    def join_tables(self, left: Tensor, right: Tensor) -> Tensor:
        """What is allowed, given what two parts allow."""
        raise NotImplementedError

    def join_causal(self, left: bool, right: bool) -> bool:
        """Whether it is causal, given whether two parts are."""
        raise NotImplementedError

    def join_widths(self, left: int | None, right: int | None) -> int | None:
        """The most keys that one query may see, given those of two parts."""
        raise NotImplementedError

    def join_spans(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        """A range that holds every key allowed, given those of two parts."""
        raise NotImplementedError

    def allowed(self, pairs: Pairs) -> Allowed:
        found: Tensor = self._fold(
            lambda part: part.allowed(pairs),
            lambda joined, left, right: joined.join_tables(left, right),
            lambda joined, table: ~table if joined.negates else table,
        )
        return found

    @property
    def key(self) -> Hashable:
        # Flat, with what joins them behind the parts: nested tuples are compared by recursion, which has an end.
        return tuple(self._listed(lambda part: part.key, lambda joined, keys: [*keys, (type(joined), len(keys))]))

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

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        for part in self.leaves():
            part.check(lead, queries, keys)

    def over_heads(self) -> Mask:
        return self.replaced(lambda part: part.over_heads())

    def leaves(self) -> list[Mask]:
        return self._listed(lambda part: part, lambda joined, parts: parts)

    def replaced(self, change: Callable[[Mask], Mask]) -> Mask:
        made: Mask = self._listed(change, lambda joined, parts: [type(joined)(tuple(parts))])[0]
        return made

    def __repr__(self) -> str:
        text: str = self._listed(repr, lambda joined, parts: [joined.written(parts)])[0]
        return text

    @abstractmethod
    def written(self, parts: list[str]) -> str:
        """It in words, given its parts in words."""

    def _listed(self, leaf: Callable[[Mask], Any], last: Callable[["Joined", Any], Any]) -> list[Any]:
        found: list[Any] = self._fold(
            lambda part: [leaf(part)], lambda joined, left, right: _extended(left, right), last
        )
        return found

    def _fold(
        self,
        leaf: Callable[[Mask], Any],
        pair: Callable[["Joined", Any, Any], Any],
        last: Callable[["Joined", Any], Any],
    ) -> Any:
        """What `leaf` finds in each mask that joins nothing, put together by `pair`, and closed by `last`."""
        above: list[tuple[Joined, Iterator[Mask]]] = [(self, iter(self.parts))]
        found: list[list[Any]] = [[]]
        while above:
            joined, parts = above[-1]
            part = next(parts, None)
            if type(part) in JOINED:  # and no subclass, which may know better
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


class Both(Joined):
    """Allowed by all of them."""

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

    def visible(self, keys: int, device: torch.device | str = "cpu") -> Bool[Tensor, "..."] | None:
        found = [seen for seen in (part.visible(keys, device) for part in self.parts) if seen is not None]
        return functools.reduce(torch.Tensor.__and__, found) if found else None

    def written(self, parts: list[str]) -> str:
        return f"({' & '.join(parts)})"


class Either(Joined):
    """Allowed by any of them."""

    __slots__ = ()

    def join_tables(self, left: Tensor, right: Tensor) -> Tensor:
        return left | right

    def join_causal(self, left: bool, right: bool) -> bool:
        return left and right

    def join_widths(self, left: int | None, right: int | None) -> int | None:
        return None

    def join_spans(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        return min(left[0], right[0]), max(left[1], right[1])

    def written(self, parts: list[str]) -> str:
        return f"({' | '.join(parts)})"


class Opposite(Joined):
    """Allowed where the other is not."""

    __slots__ = ()
    negates: ClassVar[bool] = True

    def written(self, parts: list[str]) -> str:
        return f"~{parts[0]}"


JOINED = (Both, Either, Opposite)


def join(kind: type[Joined], first: Mask, second: Mask) -> Mask:
    """Both as one mask of that kind, with no such mask inside another: `&` and `|` may be written in any order."""
    parts = [part.parts if type(part) is kind else (part,) for part in (first, second)]
    return kind((*parts[0], *parts[1]))


def _extended(left: list[Any], right: list[Any]) -> list[Any]:
    left.extend(right)
    return left


@dataclass(frozen=True, slots=True, eq=False)
class Table(Mask):
    """Any pairs, written out. Prefer `Mask.keep(tensor)` and `Mask.drop(tensor)`, which say the polarity.

    A table `(n, keys)` beside n sequences of n queries is refused, because it may as well be their padding, unless
    `of_queries` says that its rows are queries.
    """

    cells: Bool[Tensor, "*lead query key"]
    of_queries: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.cells, Tensor) or self.cells.dtype != torch.bool:
            raise wrong_kind("table", describe(self.cells), "a bool tensor", "write Mask.keep(tensor.bool())")
        if self.cells.dim() < 2:
            raise wrong(
                "table",
                describe(self.cells),
                "at least (queries, keys)",
                "write Mask.keep_keys(tensor) for a mask of keys",
            )

    def allowed(self, pairs: Pairs) -> Allowed:
        rows = self.cells if self.cells.shape[-2] == 1 else self.cells[..., pairs.row.flatten(), :]
        return rows if self.cells.shape[-1] == 1 else rows[..., pairs.column.flatten()]

    @property
    def key(self) -> Hashable:
        return type(self), self.columnwise

    @property
    def columnwise(self) -> bool:
        return self.cells.shape[-2] == 1

    def visible(self, keys: int, device: torch.device | str = "cpu") -> Bool[Tensor, "..."] | None:
        some = self.cells.any(-2)
        return some.expand(*some.shape[:-1], keys)

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.cells.shape[:-2])

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        rows, columns = self.cells.shape[-2:]
        padding = self.cells.dim() == 2 and rows > 1 and bool(lead) and (rows, columns) == (lead[0], keys)
        if not fits(rows, queries) or not fits(columns, keys):
            fix = "give it one row for each query and one column for each key"
            fix = "write Mask.keep_keys(tensor) for the padding of each sequence" if padding else fix
            raise wrong("mask.table", (rows, columns), f"(queries, keys) = ({queries}, {keys})", fix)
        if padding and not self.of_queries:
            got, expected = f"{rows} rows", f"no doubt whether they are the {rows} queries or the {rows} sequences"
            fix = "write Mask.keep_keys(tensor) if each is the padding of a sequence, tensor[None] if each is a query"
            raise wrong("mask.table", got, expected, fix)
        check_own_lead("mask.table", self.lead, lead)

    def over_heads(self) -> Mask:
        return Table(self.cells.unsqueeze(-3)) if self.cells.dim() > 2 else self


def place_heads(mask: Mask, batch: int) -> Mask:
    """The mask with an axis for heads behind `batch` lead axes, where it has none there."""
    return mask.replaced(lambda part: part if len(part.lead) > batch else part.over_heads())


def differs_by_head(mask: Mask, batch: int) -> bool:
    """Whether heads, which come behind `batch` lead axes, see different keys."""
    return any(len(part.lead) > batch and part.lead[-1] > 1 for part in mask.leaves())
