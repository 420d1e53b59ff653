"""Projections of sequences to heads, and of heads to sequences."""

from abc import abstractmethod
from typing import NamedTuple

import torch.nn.functional as F
from torch import nn

from regard.algebra.shapes import Float, Tensor
from regard.errors import wrong

SequenceTensor = Float[Tensor, "..."]


class ProjectedHeads(NamedTuple):
    """One sequence as queries, keys and values, each `(*lead, heads, length, width)`."""

    query: Tensor
    key: Tensor
    value: Tensor


class HeadProjections(nn.Module):
    """Projects sequences to heads, and heads to a sequence.

    There are `heads` for queries and `groups` of them for keys and values: as many (multi-head), one (multi-query,
    Shazeer 2019) or a divisor (grouped, Ainslie et al. 2023). Head h has the keys of group h // (heads / groups).
    """

    def __init__(self, output: nn.Module, *, heads: int, groups: int | None = None) -> None:
        super().__init__()
        groups = heads if groups is None else groups
        if heads < 1 or groups < 1 or heads % groups:
            raise wrong("groups", groups, f"a divisor of heads={heads}", f"use one of {format_divisors(heads)}")
        self.heads, self.groups = heads, groups
        self.output = output

    @abstractmethod
    def project_queries(self, query: SequenceTensor) -> Tensor:
        """Return the queries of all heads."""

    @abstractmethod
    def project_keys_values(self, source: SequenceTensor, content: SequenceTensor) -> tuple[Tensor, Tensor]:
        """Return the keys of the source and the values of the content, for each group."""

    def project_self(self, sequence: SequenceTensor) -> ProjectedHeads:
        """Return queries, keys and values of one sequence."""
        return ProjectedHeads(self.project_queries(sequence), *self.project_keys_values(sequence, sequence))

    def merge(self, output: Tensor) -> Tensor:
        """Return the heads side by side, through the last projection."""
        merged: Tensor = self.output(output.transpose(-2, -3).flatten(-2))
        return merged

    @property
    def grouped(self) -> bool:
        """Whether there are several groups of several heads."""
        return 1 < self.groups < self.heads


class Projections(HeadProjections):
    r"""Any module, or none, for each of query, key, value and output.

    $$ q = W_q x, \quad k = W_k s, \quad v = W_v c, \quad o = W_o [o_1; \dots; o_h] $$

    A part that is left out is the identity: Luong's *dot* is `Projections()`, Bahdanau's attention has `query` and
    `key`, and its values are the source as it is.

    >>> Projections(query=nn.Linear(5, 3)).project_queries(torch.ones(2, 7, 5)).shape
    torch.Size([2, 1, 7, 3])
    """

    def __init__(
        self,
        query: nn.Module | None = None,
        key: nn.Module | None = None,
        value: nn.Module | None = None,
        output: nn.Module | None = None,
        *,
        heads: int = 1,
        groups: int | None = None,
    ) -> None:
        super().__init__(default_to_identity(output), heads=heads, groups=groups)
        self.query, self.key, self.value = map(default_to_identity, (query, key, value))

    @classmethod
    def linear(
        cls,
        size: int,
        *,
        heads: int = 1,
        groups: int | None = None,
        source: int | None = None,
        content: int | None = None,
        widths: tuple[int, int] | None = None,
        bias: bool = True,
    ) -> "Projections":
        """Build four matrices. `source` and `content` are the widths of what keys and values are made from (the size),
        `widths` those of one head's key and value (size / heads)."""
        key, value = (compute_head_width(size, heads),) * 2 if widths is None else widths
        source = size if source is None else source
        made = groups or heads
        return cls(
            build_linear(size, heads * key, bias=bias),
            build_linear(source, made * key, bias=bias),
            build_linear(source if content is None else content, made * value, bias=bias),
            build_linear(heads * value, size, bias=bias),
            heads=heads,
            groups=groups,
        )

    def project_queries(self, query: SequenceTensor) -> Tensor:
        check_width("query", query, self.query)
        return split_heads(self.query(query), self.heads)

    def project_keys_values(self, source: SequenceTensor, content: SequenceTensor) -> tuple[Tensor, Tensor]:
        check_width("source", source, self.key)
        check_width("content", content, self.value)
        return split_heads(self.key(source), self.groups), split_heads(self.value(content), self.groups)


class PackedProjections(HeadProjections):
    """Query, key and value matrices in one, for a source as wide as the query: self-attention multiplies once.

    >>> heads = PackedProjections(6, heads=2, groups=1).project_self(torch.ones(5, 7, 6))
    >>> [tuple(part.shape) for part in heads]
    [(5, 2, 7, 3), (5, 1, 7, 3), (5, 1, 7, 3)]
    """

    def __init__(self, size: int, *, heads: int = 1, groups: int | None = None, bias: bool = True) -> None:
        width = compute_head_width(size, heads)
        super().__init__(build_linear(size, size, bias=bias), heads=heads, groups=groups)
        self.widths = (size, width * self.groups, width * self.groups)
        self.input = nn.Linear(size, sum(self.widths), bias=bias)
        for matrix in self.input.weight.detach().split(self.widths):
            nn.init.xavier_uniform_(matrix)
        if bias:
            nn.init.zeros_(self.input.bias)

    def slice_rows(self, start: int, stop: int | None) -> tuple[Tensor, Tensor | None]:
        """Return some rows of the matrix, and of its bias if it has one."""
        bias = None if self.input.bias is None else self.input.bias[start:stop]
        return self.input.weight[start:stop], bias

    def project_queries(self, query: SequenceTensor) -> Tensor:
        check_width("query", query, self.input)
        return split_heads(F.linear(query, *self.slice_rows(0, self.widths[0])), self.heads)

    def project_keys_values(self, source: SequenceTensor, content: SequenceTensor) -> tuple[Tensor, Tensor]:
        query, width, _ = self.widths
        check_width("source", source, self.input)
        check_width("content", content, self.input)
        if content is source:
            key, value = F.linear(source, *self.slice_rows(query, None)).chunk(2, dim=-1)
        else:
            key = F.linear(source, *self.slice_rows(query, query + width))
            value = F.linear(content, *self.slice_rows(query + width, None))
        return split_heads(key, self.groups), split_heads(value, self.groups)

    def project_self(self, sequence: SequenceTensor) -> ProjectedHeads:
        check_width("sequence", sequence, self.input)
        query, key, value = self.input(sequence).split(self.widths, dim=-1)
        return ProjectedHeads(
            split_heads(query, self.heads), split_heads(key, self.groups), split_heads(value, self.groups)
        )


def check_width(name: str, sequence: Tensor, module: nn.Module) -> None:
    """Raise if a matrix takes vectors of another width."""
    if isinstance(module, nn.Linear) and sequence.shape[-1] != module.in_features:
        got, expected = f"width {sequence.shape[-1]}", f"the layer's own {module.in_features}"
        raise wrong(name, got, expected, "build the layer for that size, or give it another `source`")


def default_to_identity(module: nn.Module | None) -> nn.Module:
    """Return the module, or the identity for None."""
    return nn.Identity() if module is None else module


def build_linear(size: int, out: int, *, bias: bool = True) -> nn.Linear:
    """Build a matrix that keeps the variance (Glorot & Bengio 2010), and a bias that starts at zero."""
    linear = nn.Linear(size, out, bias=bias)
    nn.init.xavier_uniform_(linear.weight)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear


def split_heads(sequence: Tensor, heads: int) -> Tensor:
    """Return `(*lead, length, heads · width)` as `(*lead, heads, length, width)`, without a copy."""
    width, rest = divmod(sequence.shape[-1], heads)
    if rest:
        fix = "project to a multiple of the heads"
        raise wrong("projection", f"width {sequence.shape[-1]}", f"a multiple of heads={heads}", fix)
    return sequence.view(*sequence.shape[:-1], heads, width).transpose(-2, -3)


def compute_head_width(size: int, heads: int) -> int:
    """Return the width of one head; raise unless the heads divide the size."""
    if heads < 1 or size % heads:
        raise wrong("heads", heads, f"a divisor of size={size}", f"use one of {format_divisors(size)}")
    return size // heads


def format_divisors(number: int) -> str:
    """Return all divisors of a number, for a message.

    >>> format_divisors(6)
    '1, 2, 3, 6'
    """
    return ", ".join(str(small) for small in range(1, number + 1) if number % small == 0)
