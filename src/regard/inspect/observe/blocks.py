"""A long attention is looked at in blocks of queries; what they tell is put together here."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.summary import RowSummary
from regard.inspect.recording import PooledMap, Sketch

BLOCK = 2**20  # weights looked at together: what a second cache can hold
CAUSAL_ROWS = (
    256  # queries looked at together where later ones see more keys: what all of them do not see is not computed
)
CELLS = 512  # of an overview, along an axis
LONG = 2048  # positions from which on there is an overview: below, the largest weights are picture enough
Shape = tuple[int, int, int]


class BlockSummary(NamedTuple):
    """What some queries tell: statistics, and the mean and largest weight of each cell of an overview."""

    summed: RowSummary
    cells: tuple[Tensor, Tensor] | None


def is_long(shape: Shape) -> bool:
    """Whether an overview is worth its price."""
    return max(shape[1:]) >= LONG


def split_rows(shape: Shape, size: int | None = None, *, most: int | None = None) -> Iterator[tuple[int, int]]:
    """Blocks of queries, as high as some cells and not much higher than `most`, or of a given size."""
    heads, queries, keys = shape
    if size is None:
        step = cell_width(queries)
        cells = BLOCK // (heads * keys * step)
        size = max(1, cells if most is None else min(cells, most // step)) * step
    for start in range(0, queries, size):
        yield start, min(queries, start + size)


def pool_block(weights: Float[Tensor, "head row key"], shape: Shape) -> tuple[Tensor, Tensor]:
    """The mean and the largest weight of each cell of these rows."""
    down, across = cell_width(shape[1]), cell_width(shape[2])
    heads, rows, keys = weights.shape
    if rows % down or keys % across:
        pools = F.avg_pool2d, F.max_pool2d
        mean, peak = (pool(weights, (down, across), ceil_mode=True) for pool in pools)
        return mean, peak
    cells = weights.view(heads, rows // down, down, keys // across, across)  # five times as fast as pooling
    return cells.sum(-1).sum(2) / (down * across), cells.amax(-1).amax(2)


def fits_one_block(shape: Shape) -> bool:
    """Whether all of it is one block."""
    return math.prod(shape) <= BLOCK


def join_heads(heads: Sequence[Sketch]) -> Sketch:
    """The sketches of single heads as that of all."""
    columns = zip(*(_list_tensors(head) for head in heads), strict=True)
    spread, mass, largest, places = (torch.cat(column) for column in columns)
    overviews = [head.overview for head in heads if head.overview is not None]
    overview = None
    if overviews:
        mean, peak = (torch.cat(column) for column in zip(*((own.mean, own.peak) for own in overviews), strict=True))
        overview = PooledMap(mean, peak, overviews[0].step)
    return Sketch(spread, mass, largest, places, overview)


def _list_tensors(sketch: Sketch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return sketch.entropies, sketch.mass, sketch.largest, sketch.indices


def join_blocks(blocks: Sequence[BlockSummary], shape: Shape) -> Sketch:
    """All of them as one sketch."""
    spread, masses, largest, places, _ = zip(*(block.summed for block in blocks), strict=True)
    received = masses[0].new_zeros(shape[0], shape[2])
    for mass in masses:
        received[:, : mass.shape[1]] += mass
    tables = [block.cells for block in blocks if block.cells is not None]
    overview = None
    if tables:
        mean, peak = (_pad_and_join(column).cpu() for column in zip(*tables, strict=True))
        overview = PooledMap(mean, peak, (cell_width(shape[1]), cell_width(shape[2])))
    top = torch.cat(largest, 1).cpu(), torch.cat(places, 1).int().cpu()
    return Sketch(torch.cat(spread, 1).cpu(), received.cpu(), *top, overview)


def _pad_and_join(tables: Sequence[Tensor]) -> Tensor:
    """Rows of cells below each other; those that end early go on with zeros."""
    width = max(table.shape[-1] for table in tables)
    return torch.cat([F.pad(table, (0, width - table.shape[-1])) for table in tables], 1)


def count_sketch_bytes(shape: Shape, k: int, size: int) -> int:
    """What a sketch takes, of numbers of `size` bytes."""
    heads, queries, keys = shape
    down, across = (-(-length // cell_width(length)) for length in (queries, keys))
    overview = 2 * down * across if is_long(shape) else 0
    return heads * ((queries + keys + overview) * size + queries * min(k, keys) * (size + 4))


def cell_width(size: int) -> int:
    """How many positions a cell of an overview is wide."""
    return -(-size // CELLS)
