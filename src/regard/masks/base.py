"""What every mask can do, and how masks compose."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, fields, is_dataclass

import torch

from regard.errors import wrong, wrong_kind
from regard.pairs import Pairs
from regard.shapes import Allowed, Bool, Tensor, check_lead, describe
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
        """The tensors that it is made of, those of masks inside it too."""
        names = [field.name for field in fields(self)] if is_dataclass(self) else list(vars(self))
        held = [getattr(self, name) for name in names]
        inner = [tensor for part in held if isinstance(part, Mask) for tensor in part.tensors()]
        return (*(part for part in held if isinstance(part, Tensor)), *inner)

    def over_heads(self) -> "Mask":
        """The same mask with one more lead axis, behind the others, for heads to broadcast over."""
        return self

    def table(self, queries: int, keys: int, *, device: torch.device | str = "cpu") -> Bool[Tensor, "..."]:
        """All of it, as a tensor `(*lead, queries, keys)`."""
        allowed = self.allowed(Pairs(queries, keys, device=device))
        return allowed.expand(*allowed.shape[:-2], queries, keys)

    def __and__(self, other: "Mask") -> "Mask":
        return Both(self, as_mask(other))

    def __or__(self, other: "Mask") -> "Mask":
        return Either(self, as_mask(other))

    def __invert__(self) -> "Mask":
        return Opposite(self)

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


def as_mask(mask: object) -> Mask:
    """The mask itself; a bare tensor is refused, because half of the field reads True the other way."""
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        fix = "write Mask.keep(tensor) if True means may attend, Mask.drop(tensor) if True means padding"
        raise wrong_kind("mask", describe(mask), "a Mask, whose polarity is in its type", fix)
    raise wrong_kind("mask", describe(mask), "a Mask", "write Full(), Causal(), Lengths(tensor) or Mask.keep(tensor)")


@dataclass(frozen=True, slots=True, eq=False)
class Both(Mask):
    """Allowed by the left and by the right."""

    left: Mask
    right: Mask

    def allowed(self, pairs: Pairs) -> Allowed:
        return self.left.allowed(pairs) & self.right.allowed(pairs)

    @property
    def key(self) -> Hashable:
        return type(self), self.left.key, self.right.key

    @property
    def causal(self) -> bool:
        return self.left.causal or self.right.causal

    @property
    def columnwise(self) -> bool:
        return self.left.columnwise and self.right.columnwise

    @property
    def width(self) -> int | None:
        left, right = self.left.width, self.right.width
        return right if left is None else left if right is None else min(left, right)

    def visible(self, keys: int, device: torch.device | str = "cpu") -> Bool[Tensor, "..."] | None:
        left, right = self.left.visible(keys, device), self.right.visible(keys, device)
        return right if left is None else left if right is None else left & right

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        low, high = self.left.span(start, stop, queries, keys)
        first, last = self.right.span(start, stop, queries, keys)
        return max(low, first), max(low, first, min(high, last))

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        self.left.check(lead, queries, keys)
        self.right.check(lead, queries, keys)

    def over_heads(self) -> Mask:
        return Both(self.left.over_heads(), self.right.over_heads())


@dataclass(frozen=True, slots=True, eq=False)
class Either(Mask):
    """Allowed by the left or by the right."""

    left: Mask
    right: Mask

    def allowed(self, pairs: Pairs) -> Allowed:
        return self.left.allowed(pairs) | self.right.allowed(pairs)

    @property
    def key(self) -> Hashable:
        return type(self), self.left.key, self.right.key

    @property
    def causal(self) -> bool:
        return self.left.causal and self.right.causal

    @property
    def columnwise(self) -> bool:
        return self.left.columnwise and self.right.columnwise

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        low, high = self.left.span(start, stop, queries, keys)
        first, last = self.right.span(start, stop, queries, keys)
        return min(low, first), max(high, last)

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        self.left.check(lead, queries, keys)
        self.right.check(lead, queries, keys)

    def over_heads(self) -> Mask:
        return Either(self.left.over_heads(), self.right.over_heads())


@dataclass(frozen=True, slots=True, eq=False)
class Opposite(Mask):
    """Allowed where the other is not."""

    mask: Mask

    def allowed(self, pairs: Pairs) -> Allowed:
        return ~self.mask.allowed(pairs)

    @property
    def key(self) -> Hashable:
        return type(self), self.mask.key

    @property
    def columnwise(self) -> bool:
        return self.mask.columnwise

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        self.mask.check(lead, queries, keys)

    def over_heads(self) -> Mask:
        return Opposite(self.mask.over_heads())


@dataclass(frozen=True, slots=True, eq=False)
class Table(Mask):
    """Any pairs, written out. Prefer `Mask.keep(tensor)` and `Mask.drop(tensor)`, which say the polarity."""

    cells: Bool[Tensor, "*lead query key"]

    def __post_init__(self) -> None:
        if not isinstance(self.cells, Tensor) or self.cells.dtype != torch.bool:
            raise wrong_kind("table", describe(self.cells), "a bool tensor", "write Mask.keep(tensor.bool())")
        if self.cells.dim() < 2:
            raise wrong(
                "table",
                describe(self.cells),
                "at least (queries, keys)",
                "write tensor[None, :] for a mask of keys",
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

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_lead("mask.table", tuple(self.cells.shape[:-2]), lead)
        if self.cells.shape[-2] not in (1, queries) or self.cells.shape[-1] not in (1, keys):
            got, expected = tuple(self.cells.shape[-2:]), f"(queries, keys) = ({queries}, {keys})"
            raise wrong("mask.table", got, expected, "give it one row for each query and one column for each key")

    def over_heads(self) -> Mask:
        return Table(self.cells.unsqueeze(-3)) if self.cells.dim() > 2 else self
