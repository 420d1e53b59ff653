"""One attention that was looked at: what every way of keeping it can answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Literal

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor, describe
from regard.compute.kernels.summary import summarize_weights
from regard.compute.weights import TopWeights
from regard.errors import wrong

PoolMode = Literal["mean", "max"]
InterruptCheck = Callable[[], object]
EVERY = slice(None)
BLOCK_WEIGHTS = 2**22  # weights of a window that are looked at together
INTERACTIVE_WEIGHTS = 2**26  # weights that are computed anew while somebody waits: more would take seconds
MAX_WEIGHTS = 2**32  # weights that are computed anew for one answer: more would take minutes


def never_interrupt() -> None:
    """What is done between two parts of some work where nobody has a clock."""


class AttentionMap(ABC):
    """The weights of one call at one site for one item of a batch: `heads` × `queries` × `keys`.

    How much of them is known depends on the kind; asking for what was not kept raises with what to do.
    A `head` of None is the mean over the heads. `between` is called between the parts of what may take long: whoever
    cannot wait for ever raises there.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""

    @abstractmethod
    def tile(self, head: int | None = None, rows: slice = EVERY, columns: slice = EVERY) -> Float[Tensor, "row column"]:
        """The exact weights of some queries (`rows`) and some keys (`columns`)."""

    @abstractmethod
    def entropy(self) -> Float[Tensor, "head query"]:
        """How spread each query looks, in nats: 0 = one key, log(keys) = all alike."""

    @abstractmethod
    def received_weight(self) -> Float[Tensor, "head key"]:
        """How much weight each key gets from all queries together."""

    @abstractmethod
    def top(self, k: int, between: InterruptCheck = never_interrupt) -> TopWeights:
        """The k largest weights of each query and their keys."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What is kept, for a file."""

    @abstractmethod
    def header(self) -> Mapping[str, object]:
        """What is kept beside tensors, for a file; `kind` among it."""

    @property
    def heads(self) -> int:
        return self.shape[0]

    @property
    def queries(self) -> int:
        return self.shape[1]

    @property
    def keys(self) -> int:
        return self.shape[2]

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors().values())

    def dense(self) -> Float[Tensor, "head query key"]:
        """All weights."""
        return torch.stack([self.tile(head) for head in range(self.heads)])

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
        """A window on the weights in at most `size` cells; each is the mean or the largest of the weights in it."""
        start, stop = self.resolve_slice("rows", rows, self.queries)
        first, last = self.resolve_slice("columns", columns, self.keys)
        height, width = min(size[0], stop - start), min(size[1], last - first)
        if (stop - start) * (last - first) <= BLOCK_WEIGHTS:
            return pool_table(self.tile(head, slice(start, stop), slice(first, last)), height, width, how)
        bands = []
        for band in range(height):
            top = start + band * (stop - start) // height
            bottom = start - (-(band + 1) * (stop - start) // height)
            bands.append(self.pool_band(head, slice(top, bottom), slice(first, last), (width, how), between))
        return torch.cat(bands)

    def pool_band(
        self, head: int | None, rows: slice, columns: slice, cells: tuple[int, PoolMode], between: InterruptCheck
    ) -> Float[Tensor, "1 width"]:
        """One row of cells, from some queries at a time: a file of little may claim millions of both."""
        (width, how), height = cells, rows.stop - rows.start
        step, parts = max(1, BLOCK_WEIGHTS // (columns.stop - columns.start)), []
        for start in range(rows.start, rows.stop, step):
            between()
            stop = min(rows.stop, start + step)
            part = pool_table(self.tile(head, slice(start, stop), columns), 1, width, how)
            parts.append(part * ((stop - start) / height) if how == "mean" else part)
        together = torch.cat(parts)
        return together.sum(0, keepdim=True) if how == "mean" else together.amax(0, keepdim=True)

    def check_head(self, head: int | None) -> None:
        """Raise unless there is such a head."""
        if head is not None and not 0 <= head < self.heads:
            raise wrong("head", head, f"0 … {self.heads - 1}, or None for their mean", "count heads from 0")

    @staticmethod
    def resolve_slice(name: str, part: slice, size: int) -> tuple[int, int]:
        """The bounds of a slice of a known axis; raise where nothing is in it."""
        start, stop, step = part.indices(size)
        if step != 1 or start >= stop:
            raise wrong(name, part, f"some of 0 … {size - 1} in steps of 1", "write slice(start, stop)")
        return start, stop

    def check_k(self, k: int, most: int) -> None:
        """Raise unless the k largest can be told."""
        if not 1 <= k <= most:
            raise wrong("k", k, f"1 … {most}", "ask for no more than were kept")


class DenseMap(AttentionMap):
    """Every weight, written out.

    >>> seen = DenseMap(torch.tensor([[[0.5, 0.5], [0.0, 1.0]]]))
    >>> seen.received_weight()
    tensor([[0.5000, 1.5000]])
    """

    __slots__ = ("weights",)

    def __init__(self, weights: Tensor) -> None:
        if weights.dim() != 3 or 0 in weights.shape or not weights.is_floating_point():
            raise wrong("weights", describe(weights), "floats (heads, queries, keys), none of them 0", "add the axis")
        self.weights: Float[Tensor, "head query key"] = weights.detach()

    @property
    def shape(self) -> tuple[int, int, int]:
        heads, queries, keys = self.weights.shape
        return heads, queries, keys

    def tile(self, head: int | None = None, rows: slice = EVERY, columns: slice = EVERY) -> Float[Tensor, "row column"]:
        self.check_head(head)
        rows, columns = (
            slice(*self.resolve_slice("rows", rows, self.queries)),
            slice(*self.resolve_slice("columns", columns, self.keys)),
        )
        part = self.weights[:, rows, columns]
        return part.mean(0) if head is None else part[head]

    def dense(self) -> Float[Tensor, "head query key"]:
        return self.weights

    def entropy(self) -> Float[Tensor, "head query"]:
        return summarize_weights(self.weights, 1).entropy

    def received_weight(self) -> Float[Tensor, "head key"]:
        return summarize_weights(self.weights, 1).received

    def top(self, k: int, between: InterruptCheck = never_interrupt) -> TopWeights:
        self.check_k(k, self.keys)
        return TopWeights(*self.weights.topk(k, dim=-1))

    def tensors(self) -> dict[str, Tensor]:
        return {"weights": self.weights}

    def header(self) -> Mapping[str, object]:
        return {"kind": "whole"}


def pool_table(
    table: Float[Tensor, "row column"], height: int, width: int, how: PoolMode
) -> Float[Tensor, "height width"]:
    """The table in `height` × `width` cells, of the mean or the largest of each.

    >>> pool_table(torch.tensor([[0.0, 1.0, 3.0, 5.0]]), 1, 2, "mean")
    tensor([[0.5000, 4.0000]])
    """
    if table.shape == (height, width):
        return table
    pool = F.adaptive_avg_pool2d if how == "mean" else F.adaptive_max_pool2d
    small: Tensor = pool(table[None], (height, width))
    return small[0]
