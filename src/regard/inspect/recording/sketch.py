"""An attention too long to write out, kept as statistics, its largest weights and a small picture."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from regard.algebra.shapes import Float, Tensor, describe
from regard.compute.weights import TopWeights
from regard.errors import InputError, wrong
from regard.inspect.recording.attention_map import (
    EVERY,
    AttentionMap,
    InterruptCheck,
    PoolMode,
    never_interrupt,
    pool_table,
)

FIX = "observe with a larger limit, or fewer sites"


@dataclass(frozen=True, slots=True)
class PooledMap:
    """All weights in cells of `step` queries × keys; the last cells may be smaller. Mean and largest of each."""

    mean: Float[Tensor, "head row column"]
    peak: Float[Tensor, "head row column"]
    step: tuple[int, int]

    def crop(
        self, head: int | None, rows: tuple[int, int], columns: tuple[int, int], how: PoolMode
    ) -> Float[Tensor, "row column"]:
        """The cells that these queries and keys touch."""
        down, across = self.step
        cells = self.mean if how == "mean" else self.peak
        part = cells[:, rows[0] // down : -(-rows[1] // down), columns[0] // across : -(-columns[1] // across)]
        return part.mean(0) if head is None else part[head]


@dataclass(frozen=True, slots=True, eq=False)
class Sketch(AttentionMap):
    """Statistics of all weights, the largest ones of each query, and an overview where one was made.

    `largest` and `indices` have the weights and keys of the largest, in falling order.
    """

    entropies: Float[Tensor, "head query"]
    mass: Float[Tensor, "head key"]
    largest: Float[Tensor, "head query k"]
    indices: Tensor
    overview: PooledMap | None = field(default=None)

    def __post_init__(self) -> None:
        heads, queries, keys = _infer_shape(self.entropies, self.mass)
        kept = self.largest.shape[-1] if self.largest.dim() == 3 else 0
        fits = self.largest.shape == self.indices.shape == (heads, queries, kept) and 1 <= kept <= keys
        if not fits or self.indices.is_floating_point():
            got = f"{describe(self.largest)} and {describe(self.indices)}"
            raise wrong("largest", got, f"weights and keys ({heads}, {queries}, 1 … {keys})", "keep both of one top(k)")
        if self.overview is not None:
            _check_overview(self.overview, heads, queries, keys)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.entropies.shape[0], self.entropies.shape[1], self.mass.shape[1]

    def tile(self, head: int | None = None, rows: slice = EVERY, columns: slice = EVERY) -> Float[Tensor, "row column"]:
        raise no_weights_error()

    def entropy(self) -> Float[Tensor, "head query"]:
        return self.entropies

    def received_weight(self) -> Float[Tensor, "head key"]:
        return self.mass

    def top(self, k: int, between: InterruptCheck = never_interrupt) -> TopWeights:
        self.check_k(k, self.largest.shape[-1])
        return TopWeights(self.largest[..., :k], self.indices[..., :k].long())

    def downsample(
        self,
        head: int | None = None,
        rows: slice = EVERY,
        columns: slice = EVERY,
        *,
        size: tuple[int, int] = (512, 512),
        how: PoolMode = "mean",
        between: InterruptCheck = never_interrupt,
    ) -> Float[Tensor, "height width"]:
        """As of the overview, whose cells are never cut; without one, of the largest weights alone."""
        self.check_head(head)
        start, stop = self.resolve_slice("rows", rows, self.queries)
        first, last = self.resolve_slice("columns", columns, self.keys)
        if self.overview is None:
            return self._scatter_largest(head, (start, stop), (first, last), size, how, between)
        part = self.overview.crop(head, (start, stop), (first, last), how)
        return pool_table(part, min(size[0], part.shape[0]), min(size[1], part.shape[1]), how)

    def tensors(self) -> dict[str, Tensor]:
        kept = {"entropy": self.entropies, "received": self.mass, "largest": self.largest, "places": self.indices}
        return kept if self.overview is None else {**kept, "mean": self.overview.mean, "peak": self.overview.peak}

    def header(self) -> Mapping[str, object]:
        return {"kind": "sketch", "step": None if self.overview is None else list(self.overview.step)}

    def _scatter_largest(
        self,
        head: int | None,
        rows: tuple[int, int],
        columns: tuple[int, int],
        size: tuple[int, int],
        how: PoolMode,
        between: InterruptCheck,
    ) -> Tensor:
        """The kept weights put into their cells; those that were not kept count as 0."""
        tall, wide = rows[1] - rows[0], columns[1] - columns[0]
        height, width = min(size[0], tall), min(size[1], wide)
        chosen = range(self.heads) if head is None else [head]
        cells = self.largest.new_zeros(height * width)
        down = torch.arange(tall)[:, None] * height // tall
        for number in chosen:  # one table at a time: there may be many heads
            between()
            places = self.indices[number, rows[0] : rows[1]].long() - columns[0]
            inside = (places >= 0) & (places < wide)
            at = (down * width + places * width // wide)[inside]
            weights = self.largest[number, rows[0] : rows[1]][inside]
            cells += torch.zeros_like(cells).scatter_reduce_(0, at, weights, "sum" if how == "mean" else "amax")
        share = height * width / (tall * wide) if how == "mean" else 1.0
        return (cells * (share / len(chosen))).view(height, width)


def no_weights_error() -> InputError:
    """What is said where single weights are asked for and only statistics are left."""
    expected = "an attention of which all weights or factors were kept"
    return wrong("tile", "an attention kept as statistics", expected, FIX)


def _infer_shape(spread: Tensor, mass: Tensor) -> tuple[int, int, int]:
    fits = spread.dim() == mass.dim() == 2 and spread.shape[0] == mass.shape[0]
    if not fits or 0 in (*spread.shape, *mass.shape):
        got = f"{describe(spread)} and {describe(mass)}"
        raise wrong("entropy and received", got, "(heads, queries) and (heads, keys)", "keep both of one attention")
    return spread.shape[0], spread.shape[1], mass.shape[1]


def _check_overview(overview: PooledMap, heads: int, queries: int, keys: int) -> None:
    down, across = overview.step
    expected = (heads, -(-queries // max(1, down)), -(-keys // max(1, across)))
    if min(down, across) < 1 or not overview.mean.shape == overview.peak.shape == expected:
        got = f"{describe(overview.mean)} and {describe(overview.peak)} in steps of {down} × {across}"
        raise wrong("overview", got, f"two tables {expected}", "pool whole tables")
