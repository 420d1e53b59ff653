"""The difference of two attentions of the same size."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.summary import TopWeights
from regard.errors import wrong
from regard.inspect.recording.attention_map import (
    BLOCK_WEIGHTS,
    MAX_WEIGHTS,
    AttentionMap,
    CellGrid,
    Crop,
    split_range,
)
from regard.inspect.recording.interruption import InterruptCheck, never_interrupt


@dataclass(frozen=True, slots=True, eq=False)
class Difference(AttentionMap):
    """`second` − `first`, of everything: weights are from −1 to 1, entropies and masses are gains and losses.

    >>> from regard.inspect.recording import DenseMap
    >>> one, other = DenseMap(torch.tensor([[[1.0, 0.0]]])), DenseMap(torch.tensor([[[0.25, 0.75]]]))
    >>> Difference(one, other).tile()
    tensor([[-0.7500,  0.7500]])
    """

    first: AttentionMap
    second: AttentionMap

    def __post_init__(self) -> None:
        if self.first.shape != self.second.shape:
            expected = f"{self.first.shape}, as the first (heads, queries, keys)"
            raise wrong("second", self.second.shape, expected, "compare two recordings of the same input")

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.first.shape

    def read(self, crop: Crop) -> Float[Tensor, "row column"]:
        return self.second.read(crop) - self.first.read(crop)

    def entropy(self) -> Float[Tensor, "head query"]:
        return self.second.entropy() - self.first.entropy()

    def received_weight(self) -> Float[Tensor, "head key"]:
        return self.second.received_weight() - self.first.received_weight()

    def top(self, k: int, check_interrupt: InterruptCheck = never_interrupt) -> TopWeights:
        """Return the k changes of each query that are largest in size."""
        self.check_k(k, self.keys)
        if self.heads * self.queries * self.keys > 2 * MAX_WEIGHTS:
            raise wrong(
                "top", f"{self.shape} weights", f"at most {2 * MAX_WEIGHTS:,}", "compare fewer heads, or shorter inputs"
            )
        blocks = split_range(0, self.queries, max(1, BLOCK_WEIGHTS // self.keys))
        parts = [self._find_top(head, rows, k, check_interrupt) for head in range(self.heads) for rows in blocks]
        weights, keys = (torch.cat(pieces).view(self.heads, -1, k) for pieces in zip(*parts, strict=True))
        return TopWeights(weights, keys)

    def pool(self, crop: Crop, cells: CellGrid, check_interrupt: InterruptCheck) -> Float[Tensor, "height width"]:
        """Return the change of the pooled maps: of each cell's mean, or of its largest weight."""
        both = [one.pool(crop, cells, check_interrupt) for one in (self.first, self.second)]
        finest = [max(sizes) for sizes in zip(*(one.shape for one in both), strict=True)]
        # An overview may have fewer cells than the other map: each then stands for several.
        first, second = (F.interpolate(one[None, None], size=finest, mode="nearest")[0, 0] for one in both)
        return second - first

    def tensors(self) -> dict[str, Tensor]:
        both = {"first": self.first, "second": self.second}
        return {f"{name}/{part}": tensor for name, one in both.items() for part, tensor in one.tensors().items()}

    def header(self) -> Mapping[str, object]:
        return {"kind": "difference", "first": dict(self.first.header()), "second": dict(self.second.header())}

    def _find_top(self, head: int, rows: slice, k: int, check_interrupt: InterruptCheck) -> tuple[Tensor, Tensor]:
        check_interrupt()
        change = self.tile(head, rows)
        keys = change.abs().topk(k, dim=-1).indices
        return change.gather(-1, keys), keys
