"""What every mask has, and the mask that is a table."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, is_dataclass

import torch

from regard.algebra.entries import list_as, make_checkerboard
from regard.algebra.pairs import Pairs, RowBlocks
from regard.algebra.shapes import Allowed, Bool, Int, Tensor, check_unambiguous_lead, describe, fits
from regard.algebra.terms import drop_claims, has_new_definition
from regard.errors import wrong, wrong_kind

CLAIMS: tuple[str, ...] = ("causal", "columnwise", "width", "allows_all", "find_visible_keys", "span")
CLAIMS += ("cover", "cover_fully", "segment_queries")


class Mask(ABC):
    """Which pairs may attend; `&`, `|` and `~` compose.

    >>> from regard.algebra.masks import Causal, Lengths
    >>> (Causal() & Lengths(torch.tensor(2))).table(2, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 0]], dtype=torch.int32)

    `allows` is the definition; the other members are claims that make it fast. A subclass that overrides `allows` does
    not inherit the claims of its parent.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "allows"):
            drop_claims(cls, {name: vars(Mask)[name] for name in CLAIMS})

    @abstractmethod
    def allows(self, pairs: Pairs) -> Allowed:
        """Return True for pairs that may attend, in a shape that broadcasts to `(*lead, row, column)`."""

    @property
    def plan_key(self) -> Hashable:
        """What the plan may depend on: no tensors and no values. The type itself, because two may share a name."""
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
        """The most keys that one query may see, if that is known without reading a tensor."""
        return None

    def allows_all(self, queries: int) -> bool:
        """Return whether all of that many queries see every key, if that is known without reading a tensor."""
        return False

    def find_visible_keys(self, keys: int, device: torch.device | str = "cpu") -> Bool[Tensor, "..."] | None:
        """Return which keys `(*lead, keys)` any query may see; None if all of them, or if it takes a table to know."""
        return self.allows(Pairs(1, keys, device=device)).squeeze(-2) if self.columnwise else None

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        """Return a range of keys that has every key allowed to the queries `start … stop - 1`."""
        return 0, keys

    def cover(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        """Return for each block which keys any of its queries may see in any sequence; more than those do no harm."""
        return torch.ones(1, blocks.keys, dtype=torch.bool, device=blocks.rows.device)

    def cover_fully(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        """Return for each block which keys all of its queries see in every sequence; fewer than those do no harm."""
        return torch.zeros(1, blocks.keys, dtype=torch.bool, device=blocks.rows.device)

    def segment_queries(self, queries: int, keys: int) -> Int[Tensor, " query"] | None:
        """Return a number for each query, equal for those that see much the same keys; None: neighbors do."""
        return None

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:  # noqa: B027
        """Raise if this mask does not fit a table of that size."""

    def tensors(self) -> tuple[Tensor, ...]:
        """Return its tensors and those of the masks that it joins."""
        held: list[object] = []
        for mask in self.leaves():
            names = [field.name for field in fields(mask)] if is_dataclass(mask) else list(vars(mask))
            held += [getattr(mask, name) for name in names]
        return tuple(value for value in held if isinstance(value, Tensor))

    def add_head_axis(self) -> "Mask":
        """Return the same mask with one more lead axis behind the others, which broadcasts over heads."""
        return self

    @property
    def lead(self) -> tuple[int, ...]:
        """The lead axes of its own tensors; none if it has no tensors."""
        return ()

    def leaves(self) -> "list[Mask]":
        """Return the masks that it joins, or itself if it joins none."""
        return [self]

    def map_leaves(self, change: "Callable[[Mask], Mask]") -> "Mask":
        """Return the same mask with each of its leaves changed."""
        return change(self)

    def table(self, queries: int, keys: int, *, device: torch.device | str = "cpu") -> Bool[Tensor, "..."]:
        """Return the whole mask as a tensor `(*lead, queries, keys)`."""
        allowed = self.allows(Pairs(queries, keys, device=device))
        return allowed.expand(*allowed.shape[:-2], queries, keys)

    def __and__(self, other: "Mask") -> "Mask":
        return composition.combine_masks(composition.Intersection, self, as_mask(other))

    def __or__(self, other: "Mask") -> "Mask":
        return composition.combine_masks(composition.MaskUnion, self, as_mask(other))

    def __invert__(self) -> "Mask":
        return composition.Complement((self,))

    @staticmethod
    def keep(table: Bool[Tensor, "..."]) -> "Mask":
        """Return the mask of a bool tensor whose True means *may attend* (scaled_dot_product_attention, Keras)."""
        return Table(table)

    @staticmethod
    def drop(table: Bool[Tensor, "..."]) -> "Mask":
        """Return the mask of a bool tensor whose True means *must not attend* (nn.MultiheadAttention)."""
        check_bool("table", table, "drop")
        return Table(~table)

    @staticmethod
    def keep_keys(real: Bool[Tensor, "*lead key"]) -> "Mask":
        """Return a mask of padding `(batch, keys)` or `(*lead, keys)` whose True means *is real* (AllenNLP, Keras).

        >>> Mask.keep_keys(torch.tensor([[True, True, False]])).table(1, 3).int()
        tensor([[[1, 1, 0]]], dtype=torch.int32)
        """
        return _make_key_mask("real", real, "keep_keys", negate=False)

    @staticmethod
    def drop_keys(pad: Bool[Tensor, "*lead key"]) -> "Mask":
        """Return the mask of padding `(batch, keys)` or `(*lead, keys)` whose True means *padding* (nn.Transformer)."""
        return _make_key_mask("pad", pad, "drop_keys", negate=True)


def check_bool(name: str, table: object, word: str) -> None:
    """Raise unless this is a bool tensor, for the method of `Mask` named `word`."""
    if not isinstance(table, Tensor) or table.dtype != torch.bool:
        raise wrong_kind(name, describe(table), "a bool tensor", f"write Mask.{word}(tensor.bool())")


def _make_key_mask(name: str, keys: Tensor, word: str, *, negate: bool) -> "Mask":
    check_bool(name, keys, word)
    if not keys.dim():
        raise wrong(name, describe(keys), "at least (keys,)", "give one cell for each key")
    return Table((~keys if negate else keys).unsqueeze(-2))


def as_mask(mask: object) -> Mask:
    """Return the mask itself; raise for a bare tensor, because half of the field reads True the other way."""
    if isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        fix = "write Mask.keep(tensor) if True means may attend, Mask.drop(tensor) if True means padding"
        if mask.is_floating_point():
            fix = "write bias=Dense(tensor) if it is added to scores, mask=Mask.keep(tensor > 0) if 1 means may attend"
        elif mask.dtype != torch.bool:
            fix = "write Lengths(tensor) if it counts keys, Mask.keep(tensor.bool()) if 1 means may attend"
        raise wrong_kind("mask", describe(mask), "a Mask, whose polarity is in its type", fix)
    fix = "write Full(), Causal(), Lengths(tensor) or Mask.keep(tensor)"
    if isinstance(mask, list | tuple):
        fix = "write Lengths([…]) if it counts keys, Mask.keep(torch.tensor([…])) if True means may attend"
    raise wrong_kind("mask", describe(mask), "a Mask", fix)


@list_as("table", lambda s: Table(make_checkerboard(s)), write="Mask.keep(table)", aliases="bool attn-mask 表")
@dataclass(frozen=True, slots=True, eq=False)
class Table(Mask):
    """Any pairs, written out. Prefer `Mask.keep(tensor)` and `Mask.drop(tensor)`, which name the polarity.

    A table `(n, keys)` with n sequences of n queries is an error, because it could also be their padding, unless
    `rows_are_queries`.
    """

    cells: Bool[Tensor, "*lead query key"]
    rows_are_queries: bool = False

    def __post_init__(self) -> None:
        check_bool("table", self.cells, "keep")
        if self.cells.dim() < 2:
            fix = "write Mask.keep_keys(tensor) for a mask of keys"
            raise wrong("table", describe(self.cells), "at least (queries, keys)", fix)

    def allows(self, pairs: Pairs) -> Allowed:
        rows = self.cells if self.cells.shape[-2] == 1 else self.cells[..., pairs.row.flatten(), :]
        return rows if self.cells.shape[-1] == 1 else rows[..., pairs.column.flatten()]

    @property
    def plan_key(self) -> Hashable:
        return type(self), self.columnwise

    @property
    def columnwise(self) -> bool:
        return self.cells.shape[-2] == 1

    def find_visible_keys(self, keys: int, device: torch.device | str = "cpu") -> Bool[Tensor, "..."] | None:
        some = self.cells.any(-2)
        return some.expand(*some.shape[:-1], keys)

    def cover(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        cells = self.cells.flatten(0, -3).any(0) if self.cells.dim() > 2 else self.cells
        return _reduce_rows(cells, blocks, torch.amax)

    def cover_fully(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        cells = self.cells.flatten(0, -3).all(0) if self.cells.dim() > 2 else self.cells
        return _reduce_rows(cells, blocks, torch.amin)

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
        if padding and not self.rows_are_queries:
            got, expected = f"{rows} rows", f"no doubt whether they are the {rows} queries or the {rows} sequences"
            fix = "write Mask.keep_keys(tensor) if each is the padding of a sequence, tensor[None] if each is a query"
            raise wrong("mask.table", got, expected, fix)
        check_unambiguous_lead("mask.table", self.lead, lead)

    def add_head_axis(self) -> Mask:
        return Table(self.cells.unsqueeze(-3)) if self.cells.dim() > 2 else self


def _reduce_rows(
    cells: Bool[Tensor, "#query #key"], blocks: RowBlocks, reduce: Callable[..., Tensor]
) -> Bool[Tensor, "#block key"]:
    """Return the rows of each block, reduced to one."""
    rows = blocks.rows
    in_order = cells.shape[0] == rows.numel() and torch.equal(rows.flatten(), torch.arange(rows.numel()))
    if cells.shape[0] > 1 and in_order:
        cells = reduce(cells.view(torch.uint8).unflatten(0, rows.shape), 1).bool()
    elif cells.shape[0] > 1:  # One block after the other: all of them at once would copy the whole table.
        cells = torch.stack([reduce(cells[own].view(torch.uint8), 0) for own in rows]).bool()
    return cells.expand(cells.shape[0], blocks.keys)


def ensure_head_axis(mask: Mask, batch: int) -> Mask:
    """Return the mask with an axis for heads behind `batch` lead axes, added if it has none."""
    return mask.map_leaves(lambda part: part if len(part.lead) > batch else part.add_head_axis())


def differs_by_head(mask: Mask, batch: int) -> bool:
    """Return whether heads, whose axis comes behind `batch` lead axes, see different keys."""
    return any(len(part.lead) > batch and part.lead[-1] > 1 for part in mask.leaves())


from regard.algebra.masks import composition  # noqa: E402  (at the end: composite masks are masks)
