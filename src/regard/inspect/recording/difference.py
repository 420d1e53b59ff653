"""What changed between two attentions of the same size."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor
from regard.compute.weights import TopWeights
from regard.errors import wrong
from regard.inspect.recording.attention_map import (
    BLOCK_WEIGHTS,
    EVERY,
    MAX_WEIGHTS,
    AttentionMap,
    InterruptCheck,
    PoolMode,
    never_interrupt,
)


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

    def tile(self, head: int | None = None, rows: slice = EVERY, columns: slice = EVERY) -> Float[Tensor, "row column"]:
        return self.second.tile(head, rows, columns) - self.first.tile(head, rows, columns)

    def entropy(self) -> Float[Tensor, "head query"]:
        return self.second.entropy() - self.first.entropy()

    def received_weight(self) -> Float[Tensor, "head key"]:
        return self.second.received_weight() - self.first.received_weight()

    def top(self, k: int, between: InterruptCheck = never_interrupt) -> TopWeights:
        """The k largest changes of each query, by their size."""
        self.check_k(k, self.keys)
        if self.heads * self.queries * self.keys > 2 * MAX_WEIGHTS:
            raise wrong(
                "top", f"{self.shape} weights", f"at most {2 * MAX_WEIGHTS:,}", "compare fewer heads, or shorter inputs"
            )
        rows = max(1, BLOCK_WEIGHTS // self.keys)
        parts = [
            [
                self._find_top(head, slice(start, min(self.queries, start + rows)), k, between)
                for start in range(0, self.queries, rows)
            ]
            for head in range(self.heads)
        ]
        joined = [[torch.cat(pieces) for pieces in zip(*part, strict=True)] for part in parts]
        weights, keys = zip(*joined, strict=True)
        return TopWeights(torch.stack(weights), torch.stack(keys))

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
        """The change of the pictures: of each cell's mean, or of its largest weight."""
        both = [
            seen.downsample(head, rows, columns, size=size, how=how, between=between)
            for seen in (self.first, self.second)
        ]
        finest = [max(sizes) for sizes in zip(*(one.shape for one in both), strict=True)]
        # An overview may have fewer cells than the other picture: each then stands for several.
        first, second = (F.interpolate(one[None, None], size=finest, mode="nearest")[0, 0] for one in both)
        return second - first

    def tensors(self) -> dict[str, Tensor]:
        both = {"first": self.first, "second": self.second}
        return {f"{name}/{part}": tensor for name, seen in both.items() for part, tensor in seen.tensors().items()}

    def header(self) -> Mapping[str, object]:
        return {"kind": "difference", "first": dict(self.first.header()), "second": dict(self.second.header())}

    def _find_top(self, head: int, rows: slice, k: int, between: InterruptCheck) -> tuple[Tensor, Tensor]:
        between()
        change = self.tile(head, rows)
        keys = change.abs().topk(k, dim=-1).indices
        return change.gather(-1, keys), keys
