r"""Softmax attention within many short sequences that lie one after another, without padding.

$$ o_i = \sum_{j \in s(i)} w_{ij} v_j, \qquad w_i = \mathrm{softmax}_{j \in s(i)}(c\, q_i \cdot k_j) $$

with $s(i)$ = the keys of the sequence that query $i$ belongs to (`causal`: those up to it, where the last query sits on
the last key), $c$ = `scale`. Fused kernels are made for long sequences: with a dozen tokens each, most of their time
goes into getting started. Here a sequence and a group of heads is one small task, which reads and writes the
projections where they lie: nothing is split into heads, transposed or padded. The weights of all sequences are kept
for the backward pass; they are few, because the sequences are short.
"""

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels import native, noise
from regard.compute.kernels.native import gate
from regard.compute.kernels.native.reach import SUFFIX
from regard.errors import wrong

_SHAPE = struct.Struct("8q3P2d")  # as `Shape` in ragged.cpp


class Bounds(NamedTuple):
    """Where sequences begin and end among rows that hold them one after another."""

    places: Int[Tensor, " sequences_and_one"]
    longest: int

    @classmethod
    def of(cls, lengths: Int[Tensor, " sequences"]) -> "Bounds":
        """Of sequences with these lengths.

        >>> Bounds.of(torch.tensor([2, 0, 3])).places
        tensor([0, 2, 2, 5])
        """
        places = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        return cls(places, int(lengths.max()) if len(lengths) else 0)

    @property
    def lengths(self) -> Int[Tensor, " sequences"]:
        """How many rows each has."""
        return self.places.diff()


class Heads(NamedTuple):
    """How rows are cut into heads, and what is done with them."""

    heads: int
    groups: int
    scale: float
    causal: bool = False
    dropout: float = 0.0


def usable(like: Tensor, *, build: bool = True) -> bool:
    """Whether our own loops can work on such tensors; there is no other way here."""
    return like.dtype in SUFFIX and gate.is_reachable(like) and native.load_library(build=build) is not None


def within(packed: Float[Tensor, "row all"], bounds: Bounds, heads: Heads) -> Float[Tensor, "row content"]:
    """Every sequence asks itself. A row is its queries, then its keys, then its values, head by head."""
    output: Tensor = _Within.apply(packed, bounds, heads, _seed(heads))  # type: ignore[no-untyped-call]
    return output


def across(
    query: Float[Tensor, "query width"],
    key: Float[Tensor, "key keys"],
    value: Float[Tensor, "key values"],
    bounds: tuple[Bounds, Bounds],
    heads: Heads,
) -> Float[Tensor, "query content"]:
    """Every sequence of queries asks the sequence of keys of the same number; `bounds` are of queries and of keys."""
    output: Tensor = _Across.apply(query, key, value, bounds, heads, _seed(heads))  # type: ignore[no-untyped-call]
    return output


def _seed(heads: Heads) -> int:
    return int(noise.draw_seed()) if heads.dropout else 0


class _Within(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, packed: Tensor, bounds: Bounds, heads: Heads, seed: int) -> Tensor:
        packed = gate.make_contiguous(packed)
        call = _Call(packed.dtype, (bounds, bounds), heads, seed, _thirds(packed, heads))
        output, tables = call.forward()
        ctx.save_for_backward(packed, tables)
        ctx.rest = bounds, heads, seed
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (packed, tables), (bounds, heads, seed) = ctx.saved_tensors, ctx.rest
        grad = packed.new_empty(packed.shape)
        call = _Call(packed.dtype, (bounds, bounds), heads, seed, _thirds(packed, heads))
        call.backward(tables, gate.make_contiguous(upstream), _thirds(grad, heads))
        return grad, None, None, None


class _Across(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, bounds: tuple[Bounds, Bounds], heads: Heads, seed: int
    ) -> Tensor:
        parts = gate.make_contiguous(query), gate.make_contiguous(key), gate.make_contiguous(value)
        output, tables = _Call(query.dtype, bounds, heads, seed, parts).forward()
        ctx.save_for_backward(*parts, tables)
        ctx.rest = bounds, heads, seed
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (*parts, tables), (bounds, heads, seed) = ctx.saved_tensors, ctx.rest
        grads = [part.new_empty(part.shape) for part in parts]
        _Call(parts[0].dtype, bounds, heads, seed, parts).backward(tables, gate.make_contiguous(upstream), grads)
        return *grads, None, None, None


def _thirds(packed: Tensor, heads: Heads) -> list[Tensor]:
    """Queries, keys and values of rows that hold all three."""
    width = packed.shape[1] // (heads.heads + 2 * heads.groups)
    return list(packed.split([heads.heads * width, heads.groups * width, heads.groups * width], dim=1))


def _check(bounds: tuple[Bounds, Bounds], heads: Heads, parts: Sequence[Tensor]) -> None:
    """The rows are as wide as the heads say, and the sequences are within them: our loops believe both."""
    query, key, value = parts
    if not query.dtype == key.dtype == value.dtype or len(key) != len(value):
        got = ", ".join(f"{len(part)} rows of {part.dtype}" for part in parts)
        raise wrong("query, key, value", got, "one dtype, and a value for each key", "convert them")
    if query.shape[1] // heads.heads * heads.groups != key.shape[1]:
        raise wrong("key", f"width {key.shape[1]}", "that of the queries for each group", "project them so")
    near, far = (bound.places for bound in bounds)
    if len(near) != len(far):
        raise wrong("bounds", f"{len(near)} and {len(far)} places", "equal numbers", "pair the sequences")
    for places, rows in ((near, len(query)), (far, len(key))):
        ordered = places.dtype == torch.int64 and int(places[0]) >= 0 and not bool((places.diff() < 0).any())
        if not ordered or int(places[-1]) > rows:
            raise wrong("bounds", places.tolist(), f"places in order within {rows} rows", "use Bounds.of(lengths)")


class _Call:
    """One call of our loops, forward or backward."""

    def __init__(
        self, dtype: torch.dtype, bounds: tuple[Bounds, Bounds], heads: Heads, seed: int, parts: Sequence[Tensor]
    ) -> None:
        _check(bounds, heads, parts)
        self.library, self.suffix = native.load_library(), SUFFIX[dtype]
        self.parts, self.heads, self.bounds = parts, heads, bounds
        width, content = parts[0].shape[1] // heads.heads, parts[2].shape[1] // heads.groups
        lanes = self.function("regard_lanes")()
        wide = (bounds[0].lengths + lanes - 1) // lanes * lanes
        self.tables = Bounds.of(heads.heads * bounds[1].lengths * wide).places
        self.content = heads.heads * content
        self.places = [gate.make_contiguous(bound.places) for bound in bounds]  # kept: the loop reads them later
        places = (*map(gate.get_address, self.places), gate.get_address(self.tables))
        sizes = (len(wide), heads.heads, heads.groups, width, content, int(heads.causal), seed)
        self.shape = _SHAPE.pack(torch.get_num_threads(), *sizes, *places, heads.scale, heads.dropout)

    def function(self, name: str, *kinds: type) -> Any:
        """One of our loops."""
        if self.library is None:
            raise RuntimeError("ask `usable` first")
        return self.library.function(f"{name}_{self.suffix}", *kinds)

    def forward(self) -> tuple[Tensor, Tensor]:
        """The output, and the weights for the backward pass."""
        output = self.parts[0].new_empty(self.parts[0].shape[0], self.content)
        tables = output.new_empty(int(self.tables[-1]))
        kinds = (native.POINTER, *(native.POINTER, native.SIZE) * 3, *(native.POINTER,) * 2)
        run = self.function("regard_ragged", *kinds)
        run(self.shape, *_places(self.parts), gate.get_unchecked_address(output), gate.get_unchecked_address(tables))
        return output, tables

    def backward(self, tables: Tensor, upstream: Tensor, grads: Sequence[Tensor]) -> None:
        """Fills the gradients of queries, keys and values."""
        pair, single = (native.POINTER, native.SIZE), native.POINTER
        run = self.function("regard_ragged_back", single, *pair * 3, single, single, *pair * 3)
        run(self.shape, *_places(self.parts), gate.get_address(tables), gate.get_address(upstream), *_places(grads))


def _places(parts: Sequence[Tensor]) -> list[int | None]:
    """Where rows begin and how far apart they are."""
    return [number for part in parts for number in (gate.get_strided_address(part), part.stride(0))]
