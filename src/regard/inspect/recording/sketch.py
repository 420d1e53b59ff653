"""Attention that is too long to write out, kept as statistics, its largest weights and an overview."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from regard.algebra.shapes import Float, Tensor, describe
from regard.compute.kernels.summary import TopWeights
from regard.errors import wrong
from regard.inspect.recording.attention_map import (
    AttentionMap,
    CellGrid,
    Crop,
    PoolMode,
    pool_table,
)
from regard.inspect.recording.interruption import InterruptCheck, never_interrupt

FIX = "observe with a larger limit, or fewer sites"


@dataclass(frozen=True, slots=True)
class PooledMap:
    """The mean and the largest weight of cells of `step` queries × keys; the last cells may be smaller."""

    mean: Float[Tensor, "head row column"]
    peak: Float[Tensor, "head row column"]
    step: tuple[int, int]

    def read(self, crop: Crop, how: PoolMode) -> Float[Tensor, "row column"]:
        """Return the cells that a crop touches."""
        down, across = self.step
        cells = self.mean if how == "mean" else self.peak
        rows = slice(crop.rows.start // down, -(-crop.rows.stop // down))
        part = cells[:, rows, crop.columns.start // across : -(-crop.columns.stop // across)]
        return part.mean(0) if crop.head is None else part[crop.head]


@dataclass(frozen=True, slots=True, eq=False)
class Sketch(AttentionMap):
    """Statistics of all weights, the largest ones of each query, and an overview if one was made.

    `largest` and `indices` have the largest weights and their keys, in falling order.
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

    def read(self, crop: Crop) -> Float[Tensor, "row column"]:
        expected = "an attention of which all weights or factors were kept"
        raise wrong("tile", "an attention kept as statistics", expected, FIX)

    def entropy(self) -> Float[Tensor, "head query"]:
        return self.entropies

    def received_weight(self) -> Float[Tensor, "head key"]:
        return self.mass

    def top(self, k: int, check_interrupt: InterruptCheck = never_interrupt) -> TopWeights:
        self.check_k(k, self.largest.shape[-1])
        return TopWeights(self.largest[..., :k], self.indices[..., :k].long())

    def pool(self, crop: Crop, cells: CellGrid, check_interrupt: InterruptCheck) -> Float[Tensor, "height width"]:
        """Return whole cells of the overview; without one, cells of the largest weights alone."""
        if self.overview is None:
            return self._scatter_largest(crop, cells.within(crop.size), check_interrupt)
        part = self.overview.read(crop, cells.how)
        return pool_table(part, cells.within((part.shape[0], part.shape[1])))

    def tensors(self) -> dict[str, Tensor]:
        kept = {"entropy": self.entropies, "received": self.mass, "largest": self.largest, "places": self.indices}
        return kept if self.overview is None else {**kept, "mean": self.overview.mean, "peak": self.overview.peak}

    def header(self) -> Mapping[str, object]:
        return {"kind": "sketch", "step": None if self.overview is None else list(self.overview.step)}

    def _scatter_largest(self, crop: Crop, cells: CellGrid, check_interrupt: InterruptCheck) -> Tensor:
        """Return cells of the kept weights; those that were not kept count as 0."""
        (tall, wide), (height, width, how) = crop.size, cells
        chosen = range(self.heads) if crop.head is None else [crop.head]
        sums = self.largest.new_zeros(height * width)
        down = torch.arange(tall)[:, None] * height // tall
        for head in chosen:  # one table at a time: there may be many heads
            check_interrupt()
            columns = self.indices[head, crop.rows].long() - crop.columns.start
            inside = (columns >= 0) & (columns < wide)
            cell = (down * width + columns * width // wide)[inside]
            weights = self.largest[head, crop.rows][inside]
            sums += torch.zeros_like(sums).scatter_reduce_(0, cell, weights, "sum" if how == "mean" else "amax")
        share = height * width / (tall * wide) if how == "mean" else 1.0
        return (sums * (share / len(chosen))).view(height, width)


def _infer_shape(entropies: Tensor, mass: Tensor) -> tuple[int, int, int]:
    fits = entropies.dim() == mass.dim() == 2 and entropies.shape[0] == mass.shape[0]
    if not fits or 0 in (*entropies.shape, *mass.shape):
        got = f"{describe(entropies)} and {describe(mass)}"
        raise wrong("entropy and received", got, "(heads, queries) and (heads, keys)", "keep both of one attention")
    return entropies.shape[0], entropies.shape[1], mass.shape[1]


def _check_overview(overview: PooledMap, heads: int, queries: int, keys: int) -> None:
    down, across = overview.step
    expected = (heads, -(-queries // max(1, down)), -(-keys // max(1, across)))
    if min(down, across) < 1 or not overview.mean.shape == overview.peak.shape == expected:
        got = f"{describe(overview.mean)} and {describe(overview.peak)} in steps of {down} × {across}"
        raise wrong("overview", got, f"two tables {expected}", "pool whole tables")
