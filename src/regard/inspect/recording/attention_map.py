"""One recorded attention: what can be asked of it, however it is kept."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor, describe
from regard.compute.kernels.summary import TopWeights, summarize_weights
from regard.compute.notebook import NotebookDisplay
from regard.errors import wrong
from regard.inspect.recording.explanation import CellExplanation, explain_cell
from regard.inspect.recording.interruption import InterruptCheck, never_interrupt
from regard.inspect.recording.origin import Origin

PoolMode = Literal["mean", "max"]
EVERY = slice(None)
BLOCK_WEIGHTS = 2**22  # weights that are pooled together
INTERACTIVE_WEIGHTS = 2**26  # weights that are computed anew while somebody waits: more would take seconds
MAX_WEIGHTS = 2**32  # weights that are computed anew for one answer: more would take minutes


class Crop(NamedTuple):
    """A part of an attention: one head (None for the mean), and bounded slices of its queries and keys."""

    head: int | None
    rows: slice
    columns: slice

    @property
    def size(self) -> tuple[int, int]:
        """How many queries and keys it has."""
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start


class CellGrid(NamedTuple):
    """At most `height` × `width` cells, each the mean or the largest of its weights."""

    height: int
    width: int
    how: PoolMode

    def within(self, size: tuple[int, int]) -> "CellGrid":
        """Return the same with not more cells than weights."""
        return CellGrid(min(self.height, size[0]), min(self.width, size[1]), self.how)


class AttentionMap(NotebookDisplay, ABC):
    """The weights of one call at one site for one item of a batch: `heads` × `queries` × `keys`.

    How much of them is known depends on the kind; asking for what was not kept raises with what to do.
    A `head` of None is the mean over the heads. `check_interrupt` is called between the parts of work that may take
    long: it raises to stop the work.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""

    @abstractmethod
    def read(self, crop: Crop) -> Float[Tensor, "row column"]:
        """Return the exact weights of a crop."""

    @abstractmethod
    def entropy(self) -> Float[Tensor, "head query"]:
        """Return the entropy of each query's weights in nats: 0 = one key, log(keys) = all keys alike."""

    @abstractmethod
    def received_weight(self) -> Float[Tensor, "head key"]:
        """Return how much weight each key gets from all queries together."""

    @abstractmethod
    def top(self, k: int, check_interrupt: InterruptCheck = never_interrupt) -> TopWeights:
        """Return the k largest weights of each query and their keys."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that are kept, as they are named in a file."""

    @abstractmethod
    def header(self) -> Mapping[str, object]:
        """Return what a file keeps beside the tensors, `kind` among it."""

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.shape[0]

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.shape[1]

    @property
    def keys(self) -> int:
        """The number of keys."""
        return self.shape[2]

    @property
    def bytes(self) -> int:
        """The bytes of its tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors().values())

    @property
    def origin(self) -> Origin | None:
        """What the weights were computed from; None if that was not kept."""
        return None

    def explain(self, head: int | None, query: int, key: int) -> CellExplanation:
        """Return what made one weight: its rank and share, and, if vectors were kept, the terms of its score.

        The mean of the heads was made by no single score: of it, rank and share are known.
        """
        crop = self.crop(head, slice(query, query + 1), slice(key, key + 1))
        row = self.read(crop._replace(columns=slice(0, self.keys)))[0]
        return explain_cell(row, None if head is None else self.origin, head or 0, query, key)

    def dense(self) -> Float[Tensor, "head query key"]:
        """Return all weights."""
        return torch.stack([self.tile(head) for head in range(self.heads)])

    def tile(self, head: int | None = None, rows: slice = EVERY, columns: slice = EVERY) -> Float[Tensor, "row column"]:
        """Return the exact weights of some queries (`rows`) and some keys (`columns`)."""
        return self.read(self.crop(head, rows, columns))

    def downsample(
        self,
        head: int | None = None,
        rows: slice = EVERY,
        columns: slice = EVERY,
        *,
        size: tuple[int, int] = (512, 512),
        how: PoolMode = "mean",
        check_interrupt: InterruptCheck = never_interrupt,
    ) -> Float[Tensor, "height width"]:
        """Return some of the weights in at most `size` cells; each is the mean or the largest of the weights in it."""
        return self.pool(self.crop(head, rows, columns), CellGrid(*size, how), check_interrupt)

    def pool(self, crop: Crop, cells: CellGrid, check_interrupt: InterruptCheck) -> Float[Tensor, "height width"]:
        """Return a crop in cells, computed a few queries at a time if it is large."""
        (tall, wide), start = crop.size, crop.rows.start
        cells = cells.within(crop.size)
        if tall * wide <= BLOCK_WEIGHTS:
            return pool_table(self.read(crop), cells)
        bands = []
        for band in range(cells.height):
            rows = slice(start + band * tall // cells.height, start - (-(band + 1) * tall // cells.height))
            bands.append(self._pool_band(crop._replace(rows=rows), cells._replace(height=1), check_interrupt))
        return torch.cat(bands)

    def _pool_band(self, crop: Crop, cells: CellGrid, check_interrupt: InterruptCheck) -> Float[Tensor, "1 width"]:
        """Return one row of cells, from some queries at a time: a small file may claim millions of both."""
        (height, width), parts = crop.size, []
        for rows in split_range(crop.rows.start, crop.rows.stop, max(1, BLOCK_WEIGHTS // width)):
            check_interrupt()
            part = pool_table(self.read(crop._replace(rows=rows)), cells)
            parts.append(part * ((rows.stop - rows.start) / height) if cells.how == "mean" else part)
        together = torch.cat(parts)
        return together.sum(0, keepdim=True) if cells.how == "mean" else together.amax(0, keepdim=True)

    def crop(self, head: int | None, rows: slice, columns: slice) -> Crop:
        """Return the crop that is asked for; raise if there is no such head or nothing in it."""
        if head is not None and not 0 <= head < self.heads:
            raise wrong("head", head, f"0 … {self.heads - 1}, or None for their mean", "count heads from 0")
        bounded = []
        for name, part, size in (("rows", rows, self.queries), ("columns", columns, self.keys)):
            start, stop, step = part.indices(size)
            if step != 1 or start >= stop:
                raise wrong(name, part, f"some of 0 … {size - 1} in steps of 1", "write slice(start, stop)")
            bounded.append(slice(start, stop))
        return Crop(head, *bounded)

    def check_k(self, k: int, most: int) -> None:
        """Raise unless the k largest weights are known."""
        if not 1 <= k <= most:
            raise wrong("k", k, f"1 … {most}", "ask for no more than were kept")


class DenseMap(AttentionMap):
    """Every weight, written out.

    >>> attention = DenseMap(torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]))
    >>> attention.received_weight()
    tensor([[0.5000, 1.5000]])
    """

    __slots__ = ("_origin", "weights")

    def __init__(self, weights: Tensor, origin: Origin | None = None) -> None:
        if weights.dim() != 3 or 0 in weights.shape or not weights.is_floating_point():
            raise wrong("weights", describe(weights), "floats (heads, queries, keys), none of them 0", "add the axis")
        self.weights: Float[Tensor, "head query key"] = weights.detach()
        if origin is not None and origin.shape != tuple(weights.shape):
            raise wrong("origin", origin.shape, f"{tuple(weights.shape)}, as the weights", "keep both of one call")
        self._origin = origin

    @property
    def origin(self) -> Origin | None:
        return self._origin

    @property
    def shape(self) -> tuple[int, int, int]:
        heads, queries, keys = self.weights.shape
        return heads, queries, keys

    def read(self, crop: Crop) -> Float[Tensor, "row column"]:
        part = self.weights[:, crop.rows, crop.columns]
        return part.mean(0) if crop.head is None else part[crop.head]

    def dense(self) -> Float[Tensor, "head query key"]:
        return self.weights

    def entropy(self) -> Float[Tensor, "head query"]:
        return summarize_weights(self.weights, 1).entropy

    def received_weight(self) -> Float[Tensor, "head key"]:
        return summarize_weights(self.weights, 1).received

    def top(self, k: int, check_interrupt: InterruptCheck = never_interrupt) -> TopWeights:
        self.check_k(k, self.keys)
        return TopWeights(*self.weights.topk(k, dim=-1))

    def tensors(self) -> dict[str, Tensor]:
        origin = {} if self.origin is None else self.origin.tensors()
        return {"weights": self.weights, **{f"origin/{name}": tensor for name, tensor in origin.items()}}

    def header(self) -> Mapping[str, object]:
        return {"kind": "whole", **({} if self.origin is None else {"origin": dict(self.origin.header())})}


def split_range(start: int, stop: int, step: int) -> list[slice]:
    """Return a range as slices of at most `step`.

    >>> split_range(1, 6, 3)
    [slice(1, 4, None), slice(4, 6, None)]
    """
    return [slice(first, min(stop, first + step)) for first in range(start, stop, step)]


def pool_table(table: Float[Tensor, "row column"], cells: CellGrid) -> Float[Tensor, "height width"]:
    """Return the table in cells, each the mean or the largest of its weights.

    >>> pool_table(torch.tensor([[0.0, 1.0, 3.0, 5.0]]), CellGrid(1, 2, "mean"))
    tensor([[0.5000, 4.0000]])
    """
    size = cells.height, cells.width
    if table.shape == size:
        return table
    pool = F.adaptive_avg_pool2d if cells.how == "mean" else F.adaptive_max_pool2d
    small: Tensor = pool(table[None], size)
    return small[0]
