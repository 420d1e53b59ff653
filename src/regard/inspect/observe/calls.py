"""Calls of attention that was just computed: what can be kept of them, and how many bytes that takes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

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
from regard.inspect.recording import DenseMap, FactoredMap, Factors, Origin, Sketch

OriginFinder = Callable[[], Origin | None]


@dataclass(frozen=True, slots=True)
class SoftmaxCall:
    """Softmax attention of one item of a batch: the queries, keys and bias of `Factors`, without the totals.

    `value`, if it is known, is for the length of each value; `find_origin` knows more than these tensors do.
    """

    query: Float[Tensor, "head query dim"]
    key: Float[Tensor, "group key dim"]
    bias: Tensor | None = None
    reach: int | None = None
    value: Float[Tensor, "group key width"] | None = None
    find_origin: OriginFinder | None = field(default=None, compare=False)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return self.query.shape[0], self.query.shape[1], self.key.shape[1]

    @property
    def dense_bytes(self) -> int:
        """The bytes of all weights."""
        return math.prod(self.shape) * self.query.element_size()

    @property
    def factors_bytes(self) -> int:
        """The bytes of the factors, totals among them."""
        totals = self.query[..., 0]
        parts = [self.query, self.key, totals, *([] if self.bias is None else [self.bias])]
        return sum(part.numel() * part.element_size() for part in parts)

    def count_sketch_bytes(self, k: int) -> int:
        """Return the bytes of a sketch, its overview included if the attention is long."""
        return count_sketch_bytes(self.shape, k, self.query.element_size())

    def to_dense(self) -> DenseMap:
        """Return all weights."""
        return DenseMap(masked_softmax(self.hide(self.compute_scores(0, *self.shape[1:]), 0)))

    def build_origin(self) -> Origin | None:
        """Return what the weights are computed from, in memory of its own."""
        if self.find_origin is not None:
            return self.find_origin()
        query, key = self.query.detach().cpu().clone(), self.key.detach().cpu().clone()
        bias = None if self.bias is None else self.bias.detach().cpu().clone()
        norm = None if self.value is None else self.value.detach().float().norm(dim=-1).cpu()
        return Origin(query, key, bias=bias, reach=self.reach, norm=norm)

    def to_sketch(self, k: int) -> Sketch:
        """Return statistics, the k largest weights of each query, and an overview if the attention is long."""
        return self._summarize(k)[0]

    def to_factored(self, k: int) -> FactoredMap:
        """Return the same, with factors from which any tile is computed."""
        sketch, total = self._summarize(k)
        bias = None if self.bias is None else self.bias.clone()
        return FactoredMap(sketch, Factors(self.query.clone(), self.key.clone(), total, bias, self.reach))

    def compute_scores(
        self, start: int, stop: int, width: int, buffer: Float[Tensor, " number"] | None = None
    ) -> Float[Tensor, "head row key"]:
        """Return the scores of some queries and the first keys, visible or not; written into `buffer` if given."""
        groups, rows = self.key.shape[0], self.query[:, start:stop]
        shape = self.shape[0], stop - start, width
        out = None if buffer is None else buffer[: math.prod(shape)].view(groups, -1, width)
        product = torch.bmm(rows.reshape(groups, -1, rows.shape[-1]), self.key[:, :width].mT, out=out)
        scores = product.view(shape)
        if self.bias is not None:
            scores += (self.bias if self.bias.shape[1] == 1 else self.bias[:, start:stop])[..., :width]
        return scores

    def hide(self, scores: Float[Tensor, "head row key"], start: int) -> Float[Tensor, "head row key"]:
        """Return the same table, changed in place to −inf for keys that are not visible."""
        visible = self.count_visible_keys(start)
        return scores if visible is None else scores.masked_fill_(mask_unseen(scores, visible), float("-inf"))

    def count_visible_keys(self, query: int) -> int | None:
        """Return how many keys a query sees (the next query sees one more); None if every query sees all keys."""
        return None if self.reach is None else query + self.reach + 1

    def count_block_keys(self, stop: int, k: int) -> int:
        """Return how many keys the queries before `stop` see, in whole cells of an overview; at least k."""
        keys = self.shape[2]
        if self.reach is None:
            return keys
        across = cell_width(keys)
        return min(keys, -(-max(stop + self.reach, k) // across) * across)

    def select_head(self, number: int) -> "SoftmaxCall":
        """Return the call of a single head."""
        group = number * self.key.shape[0] // self.query.shape[0]
        bias = self.bias if self.bias is None or self.bias.shape[0] == 1 else self.bias[number : number + 1]
        return SoftmaxCall(self.query[number : number + 1], self.key[group : group + 1], bias, self.reach)

    def _summarize(self, k: int) -> tuple[Sketch, Tensor]:
        """Return a sketch and the log totals of the rows, head by head: products of one long head are fastest."""
        if self.query.shape[0] == 1 or fits_one_block(self.shape):
            return self._summarize_blocks(k)
        sketches, totals = zip(*(self.select_head(n)._summarize_blocks(k) for n in range(self.shape[0])), strict=True)
        return join_heads(sketches), torch.cat(totals)

    def _summarize_blocks(self, k: int) -> tuple[Sketch, Tensor]:
        k, blocks = min(k, self.shape[2]), []
        spans = list(split_rows(self.shape, most=None if self.reach is None else CAUSAL_ROWS))
        # All blocks reuse one buffer: fresh ones would fragment memory between the summaries that are kept.
        buffer = self.query.new_empty(self.shape[0] * spans[0][1] * self.shape[2])
        for start, stop in spans:
            scores = self.compute_scores(start, stop, self.count_block_keys(stop, k), buffer)
            summed, cells = summarize(scores, None, 1.0, k, seen=self.count_visible_keys(start)), None
            if is_long(self.shape):
                total = summed.total.masked_fill(summed.total == float("-inf"), 0.0)
                cells = pool_block(self.hide(scores, start).sub_(total[..., None]).exp_(), self.shape)
            blocks.append(BlockSummary(summed, cells))
        return join_blocks(blocks, self.shape), torch.cat([block.summed.total for block in blocks], 1).cpu()


@dataclass(frozen=True, slots=True)
class RowwiseCall:
    """Any other attention: `compute_rows(start, stop)` returns the weights (heads, rows, keys) of some queries.

    `block_size` is how many queries are computed together, None for as many as a cache holds; `element_size` the
    bytes of a weight.
    """

    shape: tuple[int, int, int]
    compute_rows: Callable[[int, int], Tensor]
    block_size: int | None = None
    element_size: int = 4
    find_origin: OriginFinder | None = None

    def build_origin(self) -> Origin | None:
        """Return what the weights are computed from, if that is known."""
        return None if self.find_origin is None else self.find_origin()

    @property
    def dense_bytes(self) -> int:
        """The bytes of all weights."""
        return math.prod(self.shape) * self.element_size

    def count_sketch_bytes(self, k: int) -> int:
        """Return the bytes of a sketch."""
        return count_sketch_bytes(self.shape, k, self.element_size)

    def to_dense(self) -> DenseMap:
        """Return all weights."""
        blocks = [self.compute_rows(start, stop).cpu() for start, stop in split_rows(self.shape, self.block_size)]
        return DenseMap(blocks[0].clone() if len(blocks) == 1 else torch.cat(blocks, 1))

    def to_sketch(self, k: int) -> Sketch:
        """Return statistics, the k largest weights of each query, and an overview if the attention is long."""
        blocks = []
        for start, stop in split_rows(self.shape, self.block_size):
            weights = self.compute_rows(start, stop)
            cells = pool_block(weights, self.shape) if is_long(self.shape) else None
            blocks.append(BlockSummary(summarize_weights(weights, min(k, self.shape[2])), cells))
        return join_blocks(blocks, self.shape)


ObservedCall = SoftmaxCall | RowwiseCall


def masked_softmax(scores: Float[Tensor, "*lead query key"]) -> Float[Tensor, "*lead query key"]:
    """Return the softmax, with zeros in rows that see no key."""
    weights = scores.softmax(-1)
    empty = scores.amax(-1, keepdim=True) == float("-inf")
    return weights.masked_fill_(empty, 0.0).cpu()
