"""Attention that is too long to write out, kept as factors from which any part of it is computed."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from regard.algebra.shapes import Float, Tensor, describe
from regard.compute.kernels.summary import TopWeights
from regard.errors import wrong
from regard.inspect.recording.attention_map import (
    EVERY,
    INTERACTIVE_WEIGHTS,
    MAX_WEIGHTS,
    AttentionMap,
    CellGrid,
    Crop,
)
from regard.inspect.recording.interruption import InterruptCheck, never_interrupt
from regard.inspect.recording.origin import Origin
from regard.inspect.recording.sketch import Sketch


@dataclass(frozen=True, slots=True)
class Factors:
    r"""The factors of a softmax attention, in memory that is linear in the length.

    $$ w_{ij} = e^{\langle q_i, k_j \rangle + b_{ij} - t_i} \text{ if } j \le i + r, \text{ else } 0 $$

    with $q$ = `query` (times its scale), $k$ = `key` (one for each group of heads), $t$ = `total`, the log of the
    sum of a row, $b$ = `bias`, of size 1 along axes that share it, and $r$ = `reach`, None if every key is visible.
    """

    query: Float[Tensor, "head query dim"]
    key: Float[Tensor, "group key dim"]
    total: Float[Tensor, "head query"]
    bias: Tensor | None = None
    reach: int | None = None

    def __post_init__(self) -> None:
        fits = self.query.dim() == self.key.dim() == 3 and 0 not in (*self.query.shape, *self.key.shape)
        if not fits or self.query.shape[0] % self.key.shape[0] or self.query.shape[-1] != self.key.shape[-1]:
            got = f"{describe(self.query)} and {describe(self.key)}"
            raise wrong("query and key", got, "(heads, queries, dim) and (groups, keys, dim)", "give whole heads")
        if self.total.shape != self.query.shape[:2]:
            raise wrong("total", describe(self.total), f"{tuple(self.query.shape[:2])}", "give one for each query")
        if self.bias is None:
            return
        shapes = zip(self.bias.shape, self.shape, strict=False)
        if self.bias.dim() != 3 or any(size not in (1, full) for size, full in shapes):
            raise wrong("bias", describe(self.bias), f"axes that broadcast to {self.shape}", "give it size-1 axes")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return self.query.shape[0], self.query.shape[1], self.key.shape[1]

    def tile(self, head: int, rows: slice, columns: slice) -> Float[Tensor, "row column"]:
        """Return the weights of one head, some queries and some keys; `rows` and `columns` are bounded."""
        group = head * self.key.shape[0] // self.query.shape[0]
        scores = self.query[head, rows] @ self.key[group, columns].T
        if self.bias is not None:
            heads, tall, wide = self.bias.shape
            part = self.bias[head if heads > 1 else 0, rows if tall > 1 else EVERY, columns if wide > 1 else EVERY]
            scores = scores + part
        total = self.total[head, rows, None]
        weights = (scores - total.masked_fill(total == float("-inf"), 0.0)).exp_()  # an empty row has weights 0
        if self.reach is not None and columns.stop - 1 > rows.start + self.reach:
            column, row = torch.arange(columns.start, columns.stop), torch.arange(rows.start, rows.stop)[:, None]
            weights = weights.masked_fill_(column > row + self.reach, 0.0)
        return weights


@dataclass(frozen=True, slots=True, eq=False)
class FactoredMap(AttentionMap):
    """Statistics, largest weights and overview, and factors from which any tile is computed exactly."""

    sketch: Sketch
    factors: Factors

    def __post_init__(self) -> None:
        if self.sketch.shape != self.factors.shape:
            raise wrong(
                "factors", self.factors.shape, f"{self.sketch.shape}, as in the sketch", "keep both of one call"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.factors.shape

    @property
    def origin(self) -> Origin:
        factors = self.factors
        return Origin(factors.query, factors.key, bias=factors.bias, reach=factors.reach)

    def read(self, crop: Crop) -> Float[Tensor, "row column"]:
        head, rows, columns = crop
        if head is not None:
            return self.factors.tile(head, rows, columns)
        total = self.factors.tile(0, rows, columns)
        for other in range(1, self.heads):
            total += self.factors.tile(other, rows, columns)
        return total / self.heads

    def entropy(self) -> Float[Tensor, "head query"]:
        return self.sketch.entropies

    def received_weight(self) -> Float[Tensor, "head key"]:
        return self.sketch.mass

    def top(self, k: int, check_interrupt: InterruptCheck = never_interrupt) -> TopWeights:
        return self.sketch.top(k)

    def pool(self, crop: Crop, cells: CellGrid, check_interrupt: InterruptCheck) -> Float[Tensor, "height width"]:
        """Pool the overview if its cells are fine enough or the weights too many, else the weights."""
        overview, (tall, wide) = self.sketch.overview, crop.size
        weights = tall * wide * (self.heads if crop.head is None else 1)
        # An overview of 500 cells will do for a picture of 512, if computing the weights would take seconds.
        enough = 2 if weights > INTERACTIVE_WEIGHTS else 1
        down, across = (1, 1) if overview is None else overview.step
        fine = enough * tall >= down * cells.height and enough * wide >= across * cells.width
        if (overview is not None and fine) or weights > MAX_WEIGHTS:
            return self.sketch.pool(crop, cells, check_interrupt)
        return AttentionMap.pool(self, crop, cells, check_interrupt)  # super() does not work in a class with slots

    def tensors(self) -> dict[str, Tensor]:
        factors = self.factors
        kept = {**self.sketch.tensors(), "query": factors.query, "key": factors.key, "total": factors.total}
        return kept if factors.bias is None else {**kept, "bias": factors.bias}

    def header(self) -> Mapping[str, object]:
        return {**self.sketch.header(), "kind": "factored", "reach": self.factors.reach}
