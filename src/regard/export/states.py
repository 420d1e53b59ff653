"""The states of decoders as tensors with names, for programs that know nothing else.

A state has two parts: what depends on the source alone and stays, and what each step changes. Every tensor has a row
for each hypothesis on its first axis, so that a search can reorder them all alike.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch

from regard.algebra.masks import Lengths
from regard.algebra.shapes import Tensor
from regard.errors import wrong
from regard.layers.attention import Attention
from regard.layers.memory import Memory
from regard.models.decoders.convolutional import ConvolutionalDecoder, ConvolutionalState, Source
from regard.models.decoders.reading import Seen, Summary, Walking
from regard.models.decoders.recurrent import RecurrentDecoder, RecurrentState
from regard.models.decoders.transformer import TransformerDecoder, TransformerState, counts_positions
from regard.models.interface import Decoder, Encoded
from regard.models.past import Growing, Past
from regard.models.recurrence import Hidden
from regard.models.selecting import Shared

ROW, SOURCE, SAID = "batch", "source", "said"


class Named(NamedTuple):
    """A tensor, its name, and the names of its axes that have no fixed length."""

    name: str
    tensor: Tensor
    axes: dict[int, str]


class Carried(NamedTuple):
    """A state: what stays, and what each step changes."""

    source: list[Named]
    state: list[Named]


class Carrier(ABC):
    """Takes the states of a decoder apart and puts them together."""

    @abstractmethod
    def begin(self, encoded: Encoded) -> Carried:
        """The state before the first step."""

    @abstractmethod
    def together(self, tensors: Mapping[str, Tensor]) -> Any:
        """The state that these tensors are."""

    @abstractmethod
    def changed(self, state: Any, steps: Tensor) -> list[Named]:
        """What a step has changed."""


def carrier(decoder: Decoder[Any]) -> Carrier:
    """The one for this decoder."""
    if isinstance(decoder, RecurrentDecoder):
        return OfCells(decoder)
    if isinstance(decoder, TransformerDecoder):
        return OfBlocks(decoder)
    if isinstance(decoder, ConvolutionalDecoder):
        return OfFilters(decoder)
    expected = "a recurrent, Transformer or convolutional decoder"
    raise wrong("decoder", type(decoder).__name__, expected, "export it as safetensors")


def keys_and_values(memories: Iterable[Memory], lengths: Tensor) -> list[Named]:
    """Memories of the source, numbered, and the length of each."""
    named = [Named("lengths", lengths, {0: ROW})]
    for number, memory in enumerate(memories):
        for name, tensor in (("key", memory.key), ("value", memory.value)):
            named.append(Named(f"source.{name}.{number}", tensor, {0: ROW, tensor.dim() - 2: SOURCE}))
    return named


def memories(tensors: Mapping[str, Tensor], count: int) -> tuple[Memory, ...]:
    """The inverse."""
    mask = Lengths(tensors["lengths"])
    return tuple(Memory(tensors[f"source.key.{n}"], tensors[f"source.value.{n}"], mask) for n in range(count))


class OfCells(Carrier):
    """Recurrent decoders."""

    def __init__(self, decoder: RecurrentDecoder) -> None:
        if isinstance(decoder.reader, Walking):
            normalizer, fix = type(decoder.reader.normalizer).__name__, "export it as safetensors"
            raise wrong("normalizer", normalizer, "one without a walk, which is as long as the source", fix)
        self.decoder = decoder

    def begin(self, encoded: Encoded) -> Carried:
        hidden, seen, fed = self.decoder.begin(encoded)
        source = keys_and_values([seen.source.part], encoded.lengths)
        if isinstance(self.decoder.reader, Summary):
            source = [Named("summary", encoded.summary, {0: ROW})]
        return Carried(source, self.named(RecurrentState(hidden, seen, fed), torch.zeros_like(encoded.lengths)))

    def named(self, state: RecurrentState, steps: Tensor) -> list[Named]:
        parts = {"hidden": state.hidden.states, "cells": state.hidden.cells, "fed": state.fed}
        found = [Named(name, part, {0: ROW}) for name, part in parts.items() if part is not None]
        if state.seen.trail is not None:
            found.append(Named("trail", state.seen.trail, {0: ROW, 1: SOURCE}))
        return [*found, Named("steps", steps, {0: ROW})]

    def together(self, tensors: Mapping[str, Tensor]) -> RecurrentState:
        if isinstance(self.decoder.reader, Summary):
            vector = tensors["summary"][:, None]
            memory = Memory(vector, vector)
        else:
            (memory,) = memories(tensors, 1)
        rows = tensors["hidden"].shape[0]
        seen = Seen(Shared(memory, rows), tensors["steps"][:1], tensors.get("trail"))  # type: ignore[arg-type]
        return RecurrentState(Hidden(tensors["hidden"], tensors.get("cells")), seen, tensors.get("fed"))

    def changed(self, state: RecurrentState, steps: Tensor) -> list[Named]:
        return self.named(state, steps + 1)


class OfBlocks(Carrier):
    """Transformer decoders. How much was said is the length of the past."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        self.decoder = decoder

    def begin(self, encoded: Encoded) -> Carried:
        sources, rows = self.decoder.remember(encoded), encoded.states.shape[0]
        layers = [self.nothing(block.attention, rows, encoded.states) for block in self.decoder.blocks]
        state = TransformerState(Shared(sources, rows), Past.of(layers, alone=False))
        return Carried(keys_and_values(sources, encoded.lengths), self.named(state))

    def nothing(self, attention: Attention, rows: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of no tokens. They are not projected: graphs cannot tell the shape of what is empty."""
        word = like.new_zeros(1, 1, self.decoder.words.width)
        memory = attention.projections.memory(word, word)
        key, value = (like.new_zeros(rows, *part.shape[1:-2], 0, part.shape[-1]) for part in memory)
        return key, value

    def named(self, state: TransformerState) -> list[Named]:
        found = []
        for number, layer in enumerate(state.past.layers):
            for name, part in zip(("key", "value"), layer, strict=True):
                tensor = part.view()
                found.append(Named(f"past.{name}.{number}", tensor, {0: ROW, tensor.dim() - 2: SAID}))
        return found

    def together(self, tensors: Mapping[str, Tensor]) -> TransformerState:
        count = len(self.decoder.blocks)
        pairs = [(tensors[f"past.key.{n}"], tensors[f"past.value.{n}"]) for n in range(count)]
        rows, slots = pairs[0][0].shape[0], pairs[0][0].shape[-2]
        alone = any(counts_positions(block.attention) for block in self.decoder.blocks)
        layers = tuple((Growing.of(key), Growing.of(value)) for key, value in pairs)
        seen = torch.ones(rows, 1, slots, dtype=torch.bool)
        return TransformerState(Shared(memories(tensors, count), rows), Past(layers, seen, alone, slots))

    def changed(self, state: TransformerState, steps: Tensor) -> list[Named]:
        return self.named(state)


class OfFilters(Carrier):
    """Convolutional decoders."""

    def __init__(self, decoder: ConvolutionalDecoder) -> None:
        self.decoder = decoder

    def begin(self, encoded: Encoded) -> Carried:
        state = self.decoder.begin(encoded)
        source = keys_and_values(state.source.part.memories, encoded.lengths)
        return Carried(source, self.named(state, torch.zeros_like(encoded.lengths)))

    def named(self, state: ConvolutionalState, steps: Tensor) -> list[Named]:
        tails = [Named(f"tail.{number}", tail, {0: ROW}) for number, tail in enumerate(state.tails)]
        return [*tails, Named("steps", steps, {0: ROW})]

    def together(self, tensors: Mapping[str, Tensor]) -> ConvolutionalState:
        count = len(self.decoder.stages)
        parts, tails = memories(tensors, count), tuple(tensors[f"tail.{number}"] for number in range(count))
        gain = tensors["lengths"].to(parts[0].key.dtype).sqrt()[:, None, None]
        steps: Any = tensors["steps"][0]
        return ConvolutionalState(Shared(Source(parts, gain), tails[0].shape[0]), tails, steps)

    def changed(self, state: ConvolutionalState, steps: Tensor) -> list[Named]:
        return self.named(state, steps + 1)
