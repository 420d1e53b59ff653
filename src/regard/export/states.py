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
from regard.models.decoders.convolutional import ConvolutionalDecoder, ConvolutionalSource, ConvolutionalState
from regard.models.decoders.decoder_attention import DecoderAttentionState, FixedContext, MonotonicAttention
from regard.models.decoders.recurrent import RecurrentDecoder, RecurrentState
from regard.models.decoders.transformer import TransformerDecoder, TransformerState, counts_positions
from regard.models.interface import Decoder, EncoderOutput
from regard.models.key_value_cache import AppendableTensor, KeyValueCache
from regard.models.recurrence import HiddenState
from regard.models.selection import SharedState

ROW, SOURCE, TARGET = "batch", "source", "said"


class StateTensor(NamedTuple):
    """A tensor, its name, and the names of its axes that have no fixed length."""

    name: str
    tensor: Tensor
    axes: dict[int, str]


class ExportedState(NamedTuple):
    """A state: what stays, and what each step changes."""

    source: list[StateTensor]
    state: list[StateTensor]


class StateExporter(ABC):
    """Takes the states of a decoder apart and puts them together."""

    @abstractmethod
    def begin(self, encoded: EncoderOutput) -> ExportedState:
        """The state before the first step."""

    @abstractmethod
    def assemble(self, tensors: Mapping[str, Tensor]) -> Any:
        """The state that these tensors are."""

    @abstractmethod
    def export_changes(self, state: Any, steps: Tensor) -> list[StateTensor]:
        """What a step has changed."""


def build_state_exporter(decoder: Decoder[Any]) -> StateExporter:
    """The one for this decoder."""
    if isinstance(decoder, RecurrentDecoder):
        return RecurrentStateExporter(decoder)
    if isinstance(decoder, TransformerDecoder):
        return TransformerStateExporter(decoder)
    if isinstance(decoder, ConvolutionalDecoder):
        return ConvolutionalStateExporter(decoder)
    expected = "a recurrent, Transformer or convolutional decoder"
    raise wrong("decoder", type(decoder).__name__, expected, "export it as safetensors")


def export_memories(memories: Iterable[Memory], lengths: Tensor) -> list[StateTensor]:
    """Memories of the source, numbered, and the length of each."""
    named = [StateTensor("lengths", lengths, {0: ROW})]
    for number, memory in enumerate(memories):
        for name, tensor in (("key", memory.key), ("value", memory.value)):
            named.append(StateTensor(f"source.{name}.{number}", tensor, {0: ROW, tensor.dim() - 2: SOURCE}))
    return named


def assemble_memories(tensors: Mapping[str, Tensor], count: int) -> tuple[Memory, ...]:
    """The inverse."""
    mask = Lengths(tensors["lengths"])
    return tuple(Memory(tensors[f"source.key.{n}"], tensors[f"source.value.{n}"], mask) for n in range(count))


class RecurrentStateExporter(StateExporter):
    """Recurrent decoders."""

    def __init__(self, decoder: RecurrentDecoder) -> None:
        if isinstance(decoder.reader, MonotonicAttention):
            normalizer, fix = type(decoder.reader.normalizer).__name__, "export it as safetensors"
            raise wrong("normalizer", normalizer, "one without a walk, which is as long as the source", fix)
        self.decoder = decoder

    def begin(self, encoded: EncoderOutput) -> ExportedState:
        hidden, seen, fed = self.decoder.begin(encoded)
        source = export_memories([seen.source.part], encoded.lengths)
        if isinstance(self.decoder.reader, FixedContext):
            source = [StateTensor("summary", encoded.summary, {0: ROW})]
        return ExportedState(
            source, self.name_tensors(RecurrentState(hidden, seen, fed), torch.zeros_like(encoded.lengths))
        )

    def name_tensors(self, state: RecurrentState, steps: Tensor) -> list[StateTensor]:
        parts = {"hidden": state.hidden.states, "cells": state.hidden.cells, "fed": state.input_feed}
        found = [StateTensor(name, part, {0: ROW}) for name, part in parts.items() if part is not None]
        if state.attention.history is not None:
            found.append(StateTensor("trail", state.attention.history, {0: ROW, 1: SOURCE}))
        return [*found, StateTensor("steps", steps, {0: ROW})]

    def assemble(self, tensors: Mapping[str, Tensor]) -> RecurrentState:
        if isinstance(self.decoder.reader, FixedContext):
            vector = tensors["summary"][:, None]
            memory = Memory(vector, vector)
        else:
            (memory,) = assemble_memories(tensors, 1)
        rows = tensors["hidden"].shape[0]
        seen = DecoderAttentionState(SharedState(memory, rows), tensors["steps"][:1], tensors.get("trail"))  # type: ignore[arg-type]
        return RecurrentState(HiddenState(tensors["hidden"], tensors.get("cells")), seen, tensors.get("fed"))

    def export_changes(self, state: RecurrentState, steps: Tensor) -> list[StateTensor]:
        return self.name_tensors(state, steps + 1)


class TransformerStateExporter(StateExporter):
    """Transformer decoders. How much was said is the length of the past."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        self.decoder = decoder

    def begin(self, encoded: EncoderOutput) -> ExportedState:
        sources, rows = self.decoder.remember(encoded), encoded.states.shape[0]
        layers = [self.build_empty(block.attention, rows, encoded.states) for block in self.decoder.blocks]
        state = TransformerState(SharedState(sources, rows), KeyValueCache.create_empty(layers, alone=False))
        return ExportedState(export_memories(sources, encoded.lengths), self.name_tensors(state))

    def build_empty(self, attention: Attention, rows: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of no tokens. They are not projected: graphs cannot tell the shape of what is empty."""
        word = like.new_zeros(1, 1, self.decoder.words.width)
        memory = attention.projections.project_keys_values(word, word)
        key, value = (like.new_zeros(rows, *part.shape[1:-2], 0, part.shape[-1]) for part in memory)
        return key, value

    def name_tensors(self, state: TransformerState) -> list[StateTensor]:
        found = []
        for number, layer in enumerate(state.cache.layers):
            for name, part in zip(("key", "value"), layer, strict=True):
                tensor = part.view()
                found.append(StateTensor(f"past.{name}.{number}", tensor, {0: ROW, tensor.dim() - 2: TARGET}))
        return found

    def assemble(self, tensors: Mapping[str, Tensor]) -> TransformerState:
        count = len(self.decoder.blocks)
        pairs = [(tensors[f"past.key.{n}"], tensors[f"past.value.{n}"]) for n in range(count)]
        rows, slots = pairs[0][0].shape[0], pairs[0][0].shape[-2]
        alone = any(counts_positions(block.attention) for block in self.decoder.blocks)
        layers = tuple(
            (AppendableTensor.from_vectors(key), AppendableTensor.from_vectors(value)) for key, value in pairs
        )
        seen = torch.ones(rows, 1, slots, dtype=torch.bool)
        return TransformerState(
            SharedState(assemble_memories(tensors, count), rows), KeyValueCache(layers, seen, alone, slots)
        )

    def export_changes(self, state: TransformerState, steps: Tensor) -> list[StateTensor]:
        return self.name_tensors(state)


class ConvolutionalStateExporter(StateExporter):
    """Convolutional decoders."""

    def __init__(self, decoder: ConvolutionalDecoder) -> None:
        self.decoder = decoder

    def begin(self, encoded: EncoderOutput) -> ExportedState:
        state = self.decoder.begin(encoded)
        source = export_memories(state.source.part.memories, encoded.lengths)
        return ExportedState(source, self.name_tensors(state, torch.zeros_like(encoded.lengths)))

    def name_tensors(self, state: ConvolutionalState, steps: Tensor) -> list[StateTensor]:
        tails = [StateTensor(f"tail.{number}", tail, {0: ROW}) for number, tail in enumerate(state.tails)]
        return [*tails, StateTensor("steps", steps, {0: ROW})]

    def assemble(self, tensors: Mapping[str, Tensor]) -> ConvolutionalState:
        count = len(self.decoder.stages)
        parts, tails = assemble_memories(tensors, count), tuple(tensors[f"tail.{number}"] for number in range(count))
        gain = tensors["lengths"].to(parts[0].key.dtype).sqrt()[:, None, None]
        steps: Any = tensors["steps"][0]
        return ConvolutionalState(SharedState(ConvolutionalSource(parts, gain), tails[0].shape[0]), tails, steps)

    def export_changes(self, state: ConvolutionalState, steps: Tensor) -> list[StateTensor]:
        return self.name_tensors(state, steps + 1)
