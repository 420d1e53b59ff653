"""Attention that was just computed by others, and what of it can be kept, at what price."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.summary import mask_unseen, summarize, summarize_weights
from regard.inspect.observe.blocks import (
    CAUSAL_ROWS,
    BlockSummary,
    cell_width,
    count_sketch_bytes,
    fits_one_block,
    is_long,
    join_blocks,
    join_heads,
    pool_block,
    split_rows,
)
from regard.inspect.recording import DenseMap, FactoredMap, Factors, Sketch


@dataclass(frozen=True, slots=True)
class SoftmaxCall:
    """One item of a batch: `Factors` without their totals, which is all that a softmax attention depends on."""

    query: Float[Tensor, "head query dim"]
    key: Float[Tensor, "group key dim"]
    bias: Tensor | None = None
    reach: int | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return self.query.shape[0], self.query.shape[1], self.key.shape[1]

    @property
    def dense_bytes(self) -> int:
        """What all weights would take."""
        heads, queries, keys = self.shape
        return heads * queries * keys * self.query.element_size()

    @property
    def factors_bytes(self) -> int:
        """What the factors take."""
        parts = [self.query, self.key, *([] if self.bias is None else [self.bias])]
        return sum(part.numel() * part.element_size() for part in parts) + self.query[..., 0].numel() * 4

    def count_sketch_bytes(self, k: int) -> int:
        """What a sketch takes: mind that an overview is made from some length on."""
        return count_sketch_bytes(self.shape, k, self.query.element_size())

    def to_dense(self) -> DenseMap:
        """All weights."""
        return DenseMap(masked_softmax(self.hide(self.compute_scores(0, *self.shape[1:]), 0)))

    def to_sketch(self, k: int) -> Sketch:
        """Statistics, the k largest of each query, and an overview where the attention is long."""
        return self._summarize(k)[0]

    def to_factored(self, k: int) -> FactoredMap:
        """The same, with what any tile is found from."""
        sketch, total = self._summarize(k)
        own = [part if part is None else part.clone() for part in (self.query, self.key, self.bias)]
        query, key, bias = own
        return FactoredMap(sketch, Factors(query, key, total, bias, self.reach))  # type: ignore[arg-type]

    def compute_scores(
        self, start: int, stop: int, width: int, room: Float[Tensor, " number"] | None = None
    ) -> Float[Tensor, "head row key"]:
        """Those of some queries and the first keys, seen or not; written into `room` where there is one."""
        groups, rows = self.key.shape[0], self.query[:, start:stop]
        shape = self.shape[0], stop - start, width
        place = None if room is None else room[: math.prod(shape)].view(groups, -1, width)
        product = torch.bmm(rows.reshape(groups, -1, rows.shape[-1]), self.key[:, :width].mT, out=place)
        scores = product.view(shape)
        if self.bias is not None:
            scores += (self.bias if self.bias.shape[1] == 1 else self.bias[:, start:stop])[..., :width]
        return scores

    def hide(self, scores: Float[Tensor, "head row key"], start: int) -> Float[Tensor, "head row key"]:
        """The same table, −inf where a key is not seen."""
        seen = self.count_visible_keys(start)
        return scores if seen is None else scores.masked_fill_(mask_unseen(scores, seen), float("-inf"))

    def count_visible_keys(self, query: int) -> int | None:
        """How many keys one query sees, each next one seeing one more; None where all see all."""
        return None if self.reach is None else query + self.reach + 1

    def count_block_keys(self, stop: int, k: int) -> int:
        """How many keys the queries before `stop` see, in whole cells of an overview; at least k."""
        keys = self.shape[2]
        if self.reach is None:
            return keys
        across = cell_width(keys)
        return min(keys, -(-max(stop + self.reach, k) // across) * across)

    def select_head(self, number: int) -> "SoftmaxCall":
        """One head alone."""
        group = number * self.key.shape[0] // self.query.shape[0]
        own = 0 if self.bias is None or self.bias.shape[0] == 1 else number
        bias = None if self.bias is None else self.bias[own : own + 1]
        return SoftmaxCall(self.query[number : number + 1], self.key[group : group + 1], bias, self.reach)

    def _summarize(self, k: int) -> tuple[Sketch, Tensor]:
        """One pass over all scores; and the log totals of the rows. Products of one long head are the fastest."""
        if self.query.shape[0] == 1 or fits_one_block(self.shape):
            return self._summarize_blocks(k)
        sketches, totals = zip(*(self.select_head(n)._summarize_blocks(k) for n in range(self.shape[0])), strict=True)
        return join_heads(sketches), torch.cat(totals)

    def _summarize_blocks(self, k: int) -> tuple[Sketch, Tensor]:
        k, blocks = min(k, self.shape[2]), []
        spans = list(split_rows(self.shape, most=None if self.reach is None else CAUSAL_ROWS))
        # One room for all blocks: what is kept of each would lie in the room of the last, and none could be used again.
        room = self.query.new_empty(self.shape[0] * spans[0][1] * self.shape[2])
        for start, stop in spans:
            scores = self.compute_scores(start, stop, self.count_block_keys(stop, k), room)
            summed, cells = summarize(scores, None, 1.0, k, seen=self.count_visible_keys(start)), None
            if is_long(self.shape):
                known = summed.total.masked_fill(summed.total == float("-inf"), 0.0)
                cells = pool_block(self.hide(scores, start).sub_(known[..., None]).exp_(), self.shape)
            blocks.append(BlockSummary(summed, cells))
        return join_blocks(blocks, self.shape), torch.cat([block.summed.total for block in blocks], 1).cpu()


@dataclass(frozen=True, slots=True)
class RowwiseCall:
    """Any other attention: `compute_rows(start, stop)` computes the weights (heads, rows, keys) of some queries.

    `block_size` is how many queries are looked at together; None is as many as a cache holds.
    """

    shape: tuple[int, int, int]
    compute_rows: Callable[[int, int], Tensor]
    block_size: int | None = None

    @property
    def dense_bytes(self) -> int:
        """What all weights would take."""
        return math.prod(self.shape) * 4

    def count_sketch_bytes(self, k: int) -> int:
        """What a sketch takes."""
        return count_sketch_bytes(self.shape, k, 4)

    def to_dense(self) -> DenseMap:
        """All weights."""
        blocks = [self.compute_rows(start, stop).cpu() for start, stop in split_rows(self.shape, self.block_size)]
        return DenseMap(blocks[0].clone() if len(blocks) == 1 else torch.cat(blocks, 1))

    def to_sketch(self, k: int) -> Sketch:
        """Statistics, the k largest of each query, and an overview where the attention is long."""
        blocks = []
        for start, stop in split_rows(self.shape, self.block_size):
            weights = self.compute_rows(start, stop)
            cells = pool_block(weights, self.shape) if is_long(self.shape) else None
            blocks.append(BlockSummary(summarize_weights(weights, min(k, self.shape[2])), cells))
        return join_blocks(blocks, self.shape)


def masked_softmax(scores: Float[Tensor, "*lead query key"]) -> Float[Tensor, "*lead query key"]:
    """The softmax, and zeros where nothing is seen."""
    weights = scores.softmax(-1)
    empty = scores.amax(-1, keepdim=True) == float("-inf")
    return weights.masked_fill_(empty, 0.0).cpu()
