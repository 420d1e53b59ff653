"""The masks of the catalog."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Integral

import torch

from regard.errors import wrong, wrong_kind
from regard.masks.base import Mask
from regard.numerics.native import gate
from regard.pairs import Pairs
from regard.shapes import Allowed, Integer, Tensor, check_own_lead, check_tensor, describe

FARTHEST = 2**62  # any distance between two keys is less, and an index can hold it


@dataclass(frozen=True, slots=True)
class Full(Mask):
    """Every query may attend to every key."""

    def allowed(self, pairs: Pairs) -> Allowed:
        return torch.ones(1, 1, dtype=torch.bool, device=pairs.row.device)

    @property
    def columnwise(self) -> bool:
        return True

    def free(self, queries: int) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Causal(Mask):
    """A query sees its own position and what comes before.

    >>> Causal().table(2, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """

    def allowed(self, pairs: Pairs) -> Allowed:
        return pairs.column <= pairs.position

    @property
    def causal(self) -> bool:
        return True

    def free(self, queries: int) -> bool:
        return queries == 1

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        return 0, max(0, min(keys, stop + keys - queries))


@dataclass(frozen=True, slots=True)
class Window(Mask):
    """A query sees `before` keys before its own position and `after` keys after it (Luong's local-m; Longformer).

    >>> Window(before=1, after=0).table(3, 3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    """

    before: int
    after: int

    def __post_init__(self) -> None:
        for name, size in (("before", self.before), ("after", self.after)):
            check_count(name, size, "count the keys on that side of the query")

    def allowed(self, pairs: Pairs) -> Allowed:
        distance = pairs.column - pairs.position
        return (distance >= -min(self.before, FARTHEST)) & (distance <= min(self.after, FARTHEST))

    @property
    def key(self) -> Hashable:
        return type(self), self.width, self.causal

    @property
    def causal(self) -> bool:
        return self.after == 0

    @property
    def width(self) -> int:
        return self.before + self.after + 1

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        shift = keys - queries
        low = min(keys, max(0, start + shift - self.before))
        return low, max(low, min(keys, stop + shift + self.after))


@dataclass(frozen=True, slots=True, eq=False)
class Around(Mask):
    """A query sees the keys at most `radius` from its own `center`, given per query (Luong's local attention).

    The window is `[center − radius, center + radius]`, as in Luong et al. 2015, §3.2; `center` may be fractional.
    """

    center: Tensor
    radius: int

    def __post_init__(self) -> None:
        check_tensor("center", self.center)
        if self.center.dtype == torch.bool or self.center.is_complex() or not self.center.dim():
            fix = "give one position for each query"
            raise wrong_kind("center", describe(self.center), "real numbers of shape (*lead, queries)", fix)
        check_count("radius", self.radius, "count the keys on each side of the center")

    def allowed(self, pairs: Pairs) -> Allowed:
        own = self.center.detach()[..., pairs.row.flatten()].unsqueeze(-1)
        own = own.float() if own.dtype in (torch.float16, torch.bfloat16) else own  # which cannot count to 3,000
        return (pairs.column - own).abs() <= min(self.radius, FARTHEST)

    @property
    def key(self) -> Hashable:
        return type(self), self.radius

    @property
    def width(self) -> int:
        return 2 * self.radius + 1

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        if not self.center.numel() or not gate.known(self.center):
            return 0, keys
        own = self.center.detach()[..., start:stop]
        left, right = float(own.amin()), float(own.amax())
        if not math.isfinite(left) or not math.isfinite(right):
            return 0, keys
        low = min(keys, max(0, math.floor(left) - self.radius))
        return low, max(low, min(keys, math.ceil(right) + self.radius + 1))

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_own_lead("mask.center", self.lead, lead)
        if self.center.shape[-1] != queries:
            fix = "give one center for each query"
            raise wrong("mask.center", f"{self.center.shape[-1]} centers", f"queries={queries}", fix)

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.center.shape[:-1])

    def over_heads(self) -> Mask:
        return Around(self.center.unsqueeze(-2), self.radius) if self.center.dim() > 1 else self


@dataclass(frozen=True, slots=True, eq=False)
class Lengths(Mask):
    """Only the first `lengths` keys are real; the rest is padding. A length of zero allows nothing.

    >>> Lengths(torch.tensor([1, 3])).table(1, 3).int().squeeze(1)
    tensor([[1, 0, 0],
            [1, 1, 1]], dtype=torch.int32)
    """

    lengths: Integer[Tensor, "..."]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", as_counts("lengths", self.lengths))

    def allowed(self, pairs: Pairs) -> Allowed:
        return pairs.column < self.lengths[..., None, None]

    @property
    def columnwise(self) -> bool:
        return True

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        return 0, min(keys, most(self.lengths)) if gate.known(self.lengths) else keys

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_own_lead("mask.lengths", self.lead, lead)
        if gate.known(self.lengths) and most(self.lengths) > keys:
            fix = "count only the keys that are there"
            raise wrong("mask.lengths", most(self.lengths), f"at most keys={keys}", fix)

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.lengths.shape)

    def over_heads(self) -> Mask:
        return Lengths(self.lengths.unsqueeze(-1)) if self.lengths.dim() else self


@dataclass(frozen=True, slots=True, eq=False)
class Prefix(Mask):
    """The first `lengths` keys are seen by all queries, the rest causally (prefix language models, T5)."""

    lengths: Integer[Tensor, "..."]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", as_counts("lengths", self.lengths))

    def allowed(self, pairs: Pairs) -> Allowed:
        return (pairs.column < self.lengths[..., None, None]) | (pairs.column <= pairs.position)

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        Lengths(self.lengths).check(lead, queries, keys)

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.lengths.shape)

    def over_heads(self) -> Mask:
        return Prefix(self.lengths.unsqueeze(-1)) if self.lengths.dim() else self


@dataclass(frozen=True, slots=True, eq=False)
class Documents(Mask):
    """Queries see the keys of their own document: packed sequences.

    `keys` names the document of each key by a whole number, also a negative one; `queries` that of each query, and
    where it is left out the queries are the last keys.

    >>> Documents(torch.tensor([0, 0, 1])).table(3, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """

    keys: Integer[Tensor, "*#lead key"]
    queries: Integer[Tensor, "*#lead query"] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", as_names("keys", self.keys))
        if self.queries is not None:
            object.__setattr__(self, "queries", as_names("queries", self.queries))

    def allowed(self, pairs: Pairs) -> Allowed:
        own = (
            self.keys[..., pairs.position.flatten()] if self.queries is None else self.queries[..., pairs.row.flatten()]
        )
        return own[..., :, None] == self.keys[..., None, pairs.column.flatten()]

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_own_lead("mask.keys", tuple(self.keys.shape[:-1]), lead)
        if self.keys.shape[-1] != keys:
            raise wrong(
                "mask.keys",
                f"{self.keys.shape[-1]} documents",
                f"keys={keys}",
                "name a document for each key",
            )
        if self.queries is not None:
            check_own_lead("mask.queries", tuple(self.queries.shape[:-1]), lead)
        if self.queries is None and queries > keys:
            raise wrong("mask.queries", None, f"documents of {queries} queries", "pass Documents(keys, queries)")
        if self.queries is not None and self.queries.shape[-1] != queries:
            got, fix = f"{self.queries.shape[-1]} documents", "name a document for each query"
            raise wrong("mask.queries", got, f"queries={queries}", fix)

    @property
    def lead(self) -> tuple[int, ...]:
        own = [tuple(part.shape[:-1]) for part in (self.keys, self.queries) if part is not None]
        return max(own, key=lambda lead: (len(lead), lead))

    def over_heads(self) -> Mask:
        parts = [part if part is None or part.dim() < 2 else part.unsqueeze(-2) for part in (self.keys, self.queries)]
        return self if parts[0] is self.keys and parts[1] is self.queries else Documents(*parts)  # type: ignore[arg-type]


def most(counts: Tensor) -> int:
    """The largest count; 0 in a batch of none."""
    return int(counts.max()) if counts.numel() else 0


def as_counts(name: str, counts: Tensor) -> Tensor:
    """Whole numbers of keys, in the dtype that keys are counted in; anything else is refused."""
    counts = as_names(name, counts)
    known = counts.numel() and gate.known(counts)
    if known and int(counts.min()) < 0:
        raise wrong(name, int(counts.min()), "at least 0", "a length counts keys; an empty sequence has length 0")
    return counts


def as_names(name: str, names: Tensor) -> Tensor:
    """Whole numbers, in the dtype of an index; anything else is refused."""
    if not isinstance(names, Tensor) or names.dtype == torch.bool or names.is_floating_point() or names.is_complex():
        raise wrong_kind(name, describe(names), "an integer tensor", "write torch.tensor([...])")
    return names if names.dtype == torch.int64 else names.long()


def check_count(name: str, count: int, fix: str) -> None:
    """Raise unless this is a number of keys."""
    if isinstance(count, bool | float | Tensor) or not isinstance(count, Integral | torch.SymInt):
        raise wrong_kind(name, describe(count), "a whole number", fix)
    if count < 0:
        raise wrong(name, count, "at least 0", fix)
