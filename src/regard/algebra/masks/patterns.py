"""Masks that are patterns of positions: causal, windows."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Integral

import torch

from regard.algebra.entries import list_as
from regard.algebra.masks.base import Mask
from regard.algebra.pairs import Pairs, RowBlocks
from regard.algebra.shapes import Allowed, Bool, Tensor, check_tensor, check_unambiguous_lead, describe
from regard.compute.kernels.native import tensor_memory
from regard.errors import wrong, wrong_kind

FARTHEST = 2**62  # more than any distance between two keys, and still an int64


@list_as("full", aliases="all none global bidirectional 全局 全部")
@dataclass(frozen=True, slots=True)
class Full(Mask):
    """Every query may attend to every key."""

    def allows(self, pairs: Pairs) -> Allowed:
        return torch.ones(1, 1, dtype=torch.bool, device=pairs.row.device)

    @property
    def columnwise(self) -> bool:
        return True

    def allows_all(self, queries: int) -> bool:
        return True

    def cover_fully(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        return self.cover(blocks)


@list_as("causal", aliases="autoregressive look-ahead subsequent lower-triangular tril 因果 单向")
@dataclass(frozen=True, slots=True)
class Causal(Mask):
    """A query sees its own position and what comes before. The last query is at the position of the last key.

    So one query of a decoder sees all keys, and with more queries than keys the first queries see none. In torch and
    Keras the first query is at the first key: that is `Causal.from_first()`.

    >>> Causal().table(2, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """

    @staticmethod
    def from_first() -> "CausalFromFirst":
        """Return the causal mask of queries that begin with the keys, and need not end with them."""
        return CausalFromFirst()

    def allows(self, pairs: Pairs) -> Allowed:
        return pairs.column <= pairs.position

    @property
    def causal(self) -> bool:
        return True

    def allows_all(self, queries: int) -> bool:
        return queries == 1

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        return 0, max(0, min(keys, stop + keys - queries))

    def cover(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        return blocks.column <= blocks.position.amax(-1, keepdim=True)

    def cover_fully(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        return blocks.column <= blocks.position.amin(-1, keepdim=True)


@list_as("causal-from-first", aliases="is-causal use-causal-mask 从首位对齐的因果")
@dataclass(frozen=True, slots=True)
class CausalFromFirst(Mask):
    """The first query sees the first key, the next one key more (torch's `is_causal`, Keras' `use_causal_mask`).

    >>> Causal.from_first().table(2, 3).int()
    tensor([[1, 0, 0],
            [1, 1, 0]], dtype=torch.int32)
    """

    def allows(self, pairs: Pairs) -> Allowed:
        return pairs.column <= pairs.row

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        return 0, min(keys, stop)


@list_as(
    "window",
    lambda s: Window(before=max(1, s.keys // 8), after=max(1, s.keys // 16)),
    write="Window(before=128, after=128)",
    aliases="local local-m sliding-window longformer 局部 局部注意力 窗口",
)
@list_as(
    "causal-window",
    lambda s: Window(before=max(1, s.keys // 8), after=0),
    write="Window(before=128, after=0)",
    aliases="mistral causal-local 因果窗口",
)
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

    def allows(self, pairs: Pairs) -> Allowed:
        distance = pairs.column - pairs.position
        return (distance >= -min(self.before, FARTHEST)) & (distance <= min(self.after, FARTHEST))

    @property
    def plan_key(self) -> Hashable:
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

    def cover(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        first = blocks.position.amin(-1, keepdim=True) - min(self.before, FARTHEST)
        last = blocks.position.amax(-1, keepdim=True) + min(self.after, FARTHEST)
        return (blocks.column >= first) & (blocks.column <= last)

    def cover_fully(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        first = blocks.position.amax(-1, keepdim=True) - min(self.before, FARTHEST)
        last = blocks.position.amin(-1, keepdim=True) + min(self.after, FARTHEST)
        return (blocks.column >= first) & (blocks.column <= last)


@list_as(
    "around",
    lambda s: CenteredWindow(torch.linspace(0, s.keys - 1, s.queries), max(1, s.keys // 8)),
    write="CenteredWindow(center, radius=10)",
    aliases="centered 围绕中心",
)
@dataclass(frozen=True, slots=True, eq=False)
class CenteredWindow(Mask):
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

    def allows(self, pairs: Pairs) -> Allowed:
        center = self.center.detach()[..., pairs.row.flatten()].unsqueeze(-1)
        center = (
            center.float() if center.dtype in (torch.float16, torch.bfloat16) else center
        )  # too coarse for positions
        return (pairs.column - center).abs() <= min(self.radius, FARTHEST)

    @property
    def plan_key(self) -> Hashable:
        return type(self), self.radius

    @property
    def width(self) -> int:
        return 2 * self.radius + 1

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        if not self.center.numel() or not tensor_memory.is_readable(self.center):
            return 0, keys
        centers = self.center.detach()[..., start:stop]
        left, right = float(centers.amin()), float(centers.amax())
        if not math.isfinite(left) or not math.isfinite(right):
            return 0, keys
        low = min(keys, max(0, math.floor(left) - self.radius))
        return low, max(low, min(keys, math.ceil(right) + self.radius + 1))

    def cover(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        centers = self.center.detach().double().reshape(-1, blocks.queries)[:, blocks.rows]
        left, right = centers.amin((0, -1))[:, None], centers.amax((0, -1))[:, None]
        near = (blocks.column >= left.floor() - self.radius) & (blocks.column <= right.ceil() + self.radius)
        return near | ~(left.isfinite() & right.isfinite())

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_unambiguous_lead("mask.center", self.lead, lead)
        if self.center.shape[-1] != queries:
            fix = "give one center for each query"
            raise wrong("mask.center", f"{self.center.shape[-1]} centers", f"queries={queries}", fix)

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.center.shape[:-1])

    def add_head_axis(self) -> Mask:
        return CenteredWindow(self.center.unsqueeze(-2), self.radius) if self.center.dim() > 1 else self


def check_count(name: str, count: int, fix: str) -> None:
    """Raise unless this is a number of keys."""
    if isinstance(count, bool | float | Tensor) or not isinstance(count, Integral | torch.SymInt):
        raise wrong_kind(name, describe(count), "a whole number", fix)
    if count < 0:
        raise wrong(name, count, "at least 0", fix)
