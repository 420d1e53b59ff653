"""Split a long attention into blocks of queries, and join their summaries into one sketch."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.summary import RowSummary
from regard.inspect.recording import PooledMap, Sketch

BLOCK = 2**20  # weights of a block: as many as a second-level cache holds
CAUSAL_ROWS = 256  # queries of a causal block: keys that none of them sees are not computed
CELLS = 512  # of an overview, along an axis
LONG = 2048  # positions from which on there is an overview; below, the largest weights show enough
Shape = tuple[int, int, int]


class BlockSummary(NamedTuple):
    """Statistics of some queries, and the mean and largest weight of each cell of an overview."""

    summed: RowSummary
    cells: tuple[Tensor, Tensor] | None


def is_long(shape: Shape) -> bool:
    """Return whether an attention is long enough for an overview."""
    return max(shape[1:]) >= LONG


def split_rows(shape: Shape, size: int | None = None, *, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the bounds of blocks of queries: of `size`, or of whole cells and not much more than `most` queries."""
    heads, queries, keys = shape
    if size is None:
        step = cell_width(queries)
        cells = BLOCK // (heads * keys * step)
        size = max(1, cells if most is None else min(cells, most // step)) * step
    for start in range(0, queries, size):
        yield start, min(queries, start + size)


def pool_block(weights: Float[Tensor, "head row key"], shape: Shape) -> tuple[Tensor, Tensor]:
    """Return the mean and the largest weight of each cell of these rows."""
    down, across = cell_width(shape[1]), cell_width(shape[2])
    heads, rows, keys = weights.shape
    if rows % down or keys % across:
        step = (down, across)
        return F.avg_pool2d(weights, step, ceil_mode=True), F.max_pool2d(weights, step, ceil_mode=True)
    cells = weights.view(heads, rows // down, down, keys // across, across)  # five times as fast as pooling
    return cells.sum(-1).sum(2) / (down * across), cells.amax(-1).amax(2)


def fits_one_block(shape: Shape) -> bool:
    """Return whether an attention is a single block."""
    return math.prod(shape) <= BLOCK


def join_heads(heads: Sequence[Sketch]) -> Sketch:
    """Return the sketches of single heads as one sketch."""
    tensors = {name: torch.cat([head.tensors()[name] for head in heads]) for name in heads[0].tensors()}
    entropies, mass, largest, indices = (tensors[name] for name in ("entropy", "received", "largest", "places"))
    step = None if heads[0].overview is None else heads[0].overview.step
    overview = None if step is None else PooledMap(tensors["mean"], tensors["peak"], step)
    return Sketch(entropies, mass, largest, indices, overview)


def join_blocks(blocks: Sequence[BlockSummary], shape: Shape) -> Sketch:
    """Return the summaries of all blocks as one sketch."""
    entropies, masses, tops, _ = zip(*(block.summed for block in blocks), strict=True)
    received = masses[0].new_zeros(shape[0], shape[2])
    for mass in masses:
        received[:, : mass.shape[1]] += mass
    tables = [block.cells for block in blocks if block.cells is not None]
    overview = None
    if tables:
        mean, peak = (_pad_and_join(column).cpu() for column in zip(*tables, strict=True))
        overview = PooledMap(mean, peak, (cell_width(shape[1]), cell_width(shape[2])))
    largest, indices = (torch.cat(parts, 1).cpu() for parts in zip(*tops, strict=True))
    return Sketch(torch.cat(entropies, 1).cpu(), received.cpu(), largest, indices.int(), overview)


def _pad_and_join(tables: Sequence[Tensor]) -> Tensor:
    """Return rows of cells below each other; shorter ones are filled up with zeros."""
    width = max(table.shape[-1] for table in tables)
    return torch.cat([F.pad(table, (0, width - table.shape[-1])) for table in tables], 1)


def count_sketch_bytes(shape: Shape, k: int, size: int) -> int:
    """Return the bytes of a sketch whose numbers have `size` bytes."""
    heads, queries, keys = shape
    down, across = (-(-length // cell_width(length)) for length in (queries, keys))
    overview = 2 * down * across if is_long(shape) else 0
    return heads * ((queries + keys + overview) * size + queries * min(k, keys) * (size + 4))


def cell_width(size: int) -> int:
    """Return how many positions a cell of an overview is wide."""
    return -(-size // CELLS)
