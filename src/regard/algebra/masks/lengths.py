"""Masks by a number of keys: for each sequence, for each query, or as a prefix."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.algebra.entries import list_as, make_lengths
from regard.algebra.masks.base import Mask
from regard.algebra.pairs import Pairs, RowBlocks
from regard.algebra.shapes import Allowed, Bool, Integer, Tensor, broadcasts, check_unambiguous_lead, describe
from regard.compute.kernels.native import tensor_memory
from regard.errors import wrong, wrong_kind


@dataclass(frozen=True, slots=True, eq=False)
class LengthMask(Mask):
    """A mask by a number of keys for each sequence."""

    lengths: Integer[Tensor, "..."]

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", as_counts("lengths", self.lengths))

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_unambiguous_lead("mask.lengths", self.lead, lead)
        if tensor_memory.is_readable(self.lengths) and find_max_count(self.lengths) > keys:
            fix = "count only the keys that are there"
            raise wrong("mask.lengths", find_max_count(self.lengths), f"at most keys={keys}", fix)

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.lengths.shape)

    def add_head_axis(self) -> Mask:
        return type(self)(self.lengths.unsqueeze(-1)) if self.lengths.dim() else self


@list_as(
    "lengths",
    lambda s: Lengths(make_lengths(s)),
    write="Lengths(lengths)",
    aliases="padding valid-lens valid-lengths key-padding-mask 有效长度 填充",
)
@dataclass(frozen=True, slots=True, eq=False)
class Lengths(LengthMask):
    """Only the first `lengths` keys are real; the rest is padding. A length of zero allows nothing.

    One length for each sequence, `(batch,)`, or one for each of its queries, `(batch, queries)`: an axis more than the
    tensors have before their last two is that of queries. `Lengths.per_query` says so itself.

    >>> Lengths(torch.tensor([1, 3])).table(1, 3).int().squeeze(1)
    tensor([[1, 0, 0],
            [1, 1, 1]], dtype=torch.int32)
    """

    @staticmethod
    def per_query(lengths: Integer[Tensor, "*lead query"]) -> "QueryLengths":
        """Return a mask by a length for each query of each sequence, as d2l's `valid_lens` of two axes.

        >>> Lengths.per_query(torch.tensor([[1, 2]])).table(2, 3).int()
        tensor([[[1, 0, 0],
                 [1, 1, 0]]], dtype=torch.int32)
        """
        return QueryLengths(lengths)

    def allows(self, pairs: Pairs) -> Allowed:
        return pairs.column < self.lengths[..., None, None]

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        if self.lead[-1:] == (queries,) and len(self.lead) == len(lead) and not broadcasts(self.lead, lead):
            expected, fix = f"one for each of {lead} sequences and heads", "write Lengths(lengths[..., None, :])"
            raise wrong("mask.lengths", f"one for each query, {self.lead}", expected, fix)
        LengthMask.check(self, lead, queries, keys)

    @property
    def columnwise(self) -> bool:
        return True

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        return 0, min(keys, find_max_count(self.lengths)) if tensor_memory.is_readable(self.lengths) else keys

    def cover(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        return blocks.column < find_max_count(self.lengths)

    def cover_fully(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        return blocks.column < (int(self.lengths.min()) if self.lengths.numel() else 0)


@list_as(
    "query-lengths",
    lambda s: QueryLengths(torch.arange(s.queries) % (s.keys + 1)),
    write="Lengths.per_query(lengths)",
    aliases="逐查询有效长度",
)
@dataclass(frozen=True, slots=True, eq=False)
class QueryLengths(LengthMask):
    """Each query sees the first `lengths` keys, a number of its own: `(*lead, queries)`."""

    def allows(self, pairs: Pairs) -> Allowed:
        return pairs.column < self.lengths[..., pairs.row.flatten(), None]

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.lengths.shape[:-1])

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        if not self.lengths.dim() or self.lengths.shape[-1] != queries:
            got, fix = f"shape {tuple(self.lengths.shape)}", "give one length for each query"
            raise wrong("mask.lengths", got, f"queries={queries} on the last axis", fix)
        LengthMask.check(self, lead, queries, keys)

    def add_head_axis(self) -> Mask:
        return QueryLengths(self.lengths.unsqueeze(-2)) if self.lengths.dim() > 1 else self

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        readable = tensor_memory.is_readable(self.lengths)
        return 0, min(keys, find_max_count(self.lengths[..., start:stop])) if readable else keys


@list_as("prefix", lambda s: Prefix(make_lengths(s)), write="Prefix(lengths)", aliases="prefix-lm 前缀")
@dataclass(frozen=True, slots=True, eq=False)
class Prefix(LengthMask):
    """All queries see the first `lengths` keys, and the rest causally (prefix language models, T5)."""

    def allows(self, pairs: Pairs) -> Allowed:
        return (pairs.column < self.lengths[..., None, None]) | (pairs.column <= pairs.position)

    def cover(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        causal = blocks.column <= blocks.position.amax(-1, keepdim=True)
        return causal | (blocks.column < find_max_count(self.lengths))


def resolve_query_lengths(mask: Mask, lead: int, query: Tensor) -> Mask:
    """Return the mask with those `Lengths` by query that have an axis more than the `lead` axes of the tensors.

    The number of queries is compared last, and as it is: a traced one must not become a number.
    """
    return _map_lengths(
        mask,
        lambda part: (
            part.lengths.dim() == lead + 1 and query.dim() > 1 and bool(part.lengths.shape[-1] == query.shape[-2])
        ),
    )


def resolve_layer_lengths(mask: Mask, batch: int, queries: int, heads: int) -> Mask:
    """Return the mask of a layer, whose `Lengths` of one more axis than the batch may be of queries or of heads.

    Raise if there are as many queries as heads.
    """

    def is_by_query(part: Lengths) -> bool:
        axes, last = part.lengths.dim(), part.lengths.shape[-1:]
        if axes == batch + 1 and last == (queries,) and queries == heads > 1:
            got, expected = (
                f"{queries} behind the batch",
                f"no doubt whether they are the {queries} queries or the heads",
            )
            fix = "write Lengths.per_query(lengths), or lengths[..., None].expand(-1, -1, queries) if they are heads"
            raise wrong("mask.lengths", got, expected, fix)
        return axes in (batch + 1, batch + 2) and last == (queries,)

    return _map_lengths(mask, is_by_query)


def _map_lengths(mask: Mask, is_by_query: Callable[[Lengths], bool]) -> Mask:
    def change(part: Mask) -> Mask:
        return QueryLengths(part.lengths) if isinstance(part, Lengths) and is_by_query(part) else part

    return mask.map_leaves(change) if any(change(part) is not part for part in mask.leaves()) else mask


def find_max_count(counts: Tensor) -> int:
    """Return the largest count, 0 for an empty batch."""
    return int(counts.max()) if counts.numel() else 0


def as_counts(name: str, counts: Tensor | Sequence[Any]) -> Tensor:
    """Return numbers of keys as int64; raise if they are not whole numbers or are negative."""
    counts = as_integers(name, counts)
    known = counts.numel() and tensor_memory.is_readable(counts)
    if known and int(counts.min()) < 0:
        raise wrong(name, int(counts.min()), "at least 0", "a length counts keys; an empty sequence has length 0")
    return counts


def as_integers(name: str, names: Tensor | Sequence[Any]) -> Tensor:
    """Return whole numbers as int64, also those of a list or an array; raise for anything else."""
    if isinstance(names, list | tuple | np.ndarray):
        names = torch.as_tensor(names)
    if not isinstance(names, Tensor) or names.dtype == torch.bool or names.is_floating_point() or names.is_complex():
        fix = "write torch.tensor([...])"
        if isinstance(names, Tensor):
            fix = "write mask.sum(-1), which counts" if names.dtype == torch.bool else "write lengths.long()"
        raise wrong_kind(name, describe(names), "an integer tensor", fix)
    return names if names.dtype == torch.int64 else names.long()
