"""Decoder states as named tensors, for programs that know nothing else of a decoder.

A state has two parts: tensors that depend on the source alone, and tensors that each step changes. Every tensor has a
row for each hypothesis on its first axis, so that a search can reorder all of them alike.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from regard.algebra.masks import Lengths
from regard.algebra.shapes import Tensor
from regard.layers.memory import Memory

ROW, SOURCE, TARGET = "batch", "source", "target"


class StateTensor(NamedTuple):
    """A tensor, its name, and the names of its axes that have no fixed length."""

    name: str
    tensor: Tensor
    axes: dict[int, str]


class ExportedState(NamedTuple):
    """The tensors of the source, which stay, and those of the state, which each step changes."""

    source: list[StateTensor]
    state: list[StateTensor]


def export_memories(memories: Iterable[Memory], lengths: Tensor) -> list[StateTensor]:
    """Return the keys and values of memories of the source, numbered, and the lengths of the source."""
    pairs = [
        (f"source.{name}.{number}", tensor)
        for number, memory in enumerate(memories)
        for name, tensor in (("key", memory.key), ("value", memory.value))
    ]
    named = [StateTensor(name, tensor, {0: ROW, tensor.dim() - 2: SOURCE}) for name, tensor in pairs]
    return [StateTensor("lengths", lengths, {0: ROW}), *named]


def assemble_memories(tensors: Mapping[str, Tensor], count: int) -> tuple[Memory, ...]:
    """Return the memories that `export_memories` took apart."""
    mask = Lengths(tensors["lengths"])
    return tuple(Memory(tensors[f"source.key.{n}"], tensors[f"source.value.{n}"], mask) for n in range(count))
