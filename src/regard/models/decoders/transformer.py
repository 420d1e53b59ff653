"""Transformer decoders, all positions at once or one at a time over a cache."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.layers.attention import Attention
from regard.layers.blocks import DecoderBlock, DecoderState
from regard.layers.memory import Memory
from regard.models.decoders.parts import check_source
from regard.models.interface import Advanced, Alignment, Averaged, Decoder, Encoded, Taught
from regard.models.past import Growing, Past
from regard.models.selecting import Shared
from regard.models.words import Words


class TransformerState(NamedTuple):
    """What a Transformer decoder remembers: the source, projected for each block, and its own past."""

    source: Shared[tuple[Memory, ...]]
    past: Past


class TransformerDecoder(Decoder[TransformerState]):
    """Blocks of causal self-attention, attention to the source, and feed-forward. Vaswani et al. 2017, §3.1.

    One step reads the keys and values of the steps before from the state. Weights are those of the last block to the
    source, averaged over its heads.
    """

    def __init__(
        self, words: Words, blocks: Sequence[DecoderBlock], output: nn.Linear, *, norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        for block in blocks:
            check_source(block.source)
        self.words, self.output = words, output
        self.blocks = cast(Sequence[DecoderBlock], nn.ModuleList(blocks))
        self.norm = nn.Identity() if norm is None else norm

    def begin(self, encoded: Encoded) -> TransformerState:
        empty = encoded.states.new_empty(encoded.states.shape[0], 0, self.words.width)
        past = [block.attention.projections.memory(empty, empty) for block in self.blocks]
        alone = any(counts_positions(block.attention) for block in self.blocks)
        sources = Shared(self.remember(encoded), encoded.states.shape[0])
        return TransformerState(sources, Past.of(past, alone=alone))

    def remember(self, encoded: Encoded) -> tuple[Memory, ...]:
        """The source as each block reads it."""
        mask = encoded.mask
        return tuple(block.source.remember(encoded.states, encoded.content, mask=mask) for block in self.blocks)

    def advance(self, token: Int[Tensor, " row"], state: TransformerState) -> Advanced[TransformerState]:
        source, past = state.source, state.past
        stream = self.words(token[:, None], start=past.depth)[:, 0]
        past, layers, weights = past.after(), [], None
        for block, memory, own in zip(self.blocks, source.part, past.layers, strict=True):
            stream, layer = read_past(block, stream, past, own)
            layers.append(layer)
            stream, weights = read_source(block, stream, source, memory)
            stream = block.around_forward.after(stream, block.feed_forward(block.around_forward.before(stream)))
        later = TransformerState(source, replace(past, layers=tuple(layers)))
        return Advanced(self.norm(stream), later, weights)

    def teach(
        self, tokens: Int[Tensor, "batch target"], encoded: Encoded, lengths: Int[Tensor, " batch"] | None = None
    ) -> Taught:
        stream, weights = self.words(tokens), None
        for block, memory in zip(self.blocks, self.remember(encoded), strict=True):
            stream, _, _, looked = block(stream, DecoderState(None, memory))
            weights = Averaged(looked, tuple(tokens.shape))
        return Taught(self.norm(stream), weights)


def counts_positions(attention: Attention) -> bool:
    """Whether the place of a key among the keys matters to it, beyond what the key itself says."""
    mechanism = attention.mechanism
    sequential = mechanism.normalizer.form == "sequential"
    return mechanism.bias is not None or mechanism.score.counts_keys or sequential


def read_past(
    block: DecoderBlock, stream: Float[Tensor, "row size"], past: Past, own: tuple[Growing, Growing]
) -> tuple[Float[Tensor, "row size"], tuple[Growing, Growing]]:
    """Self-attention of one step: the stream after it, and the layer's keys and values with those of this step.

    `past` is that of after this step; the hypotheses of a sentence ask as its queries.
    """
    attention = block.attention
    query, key, value = attention.projections.together(past.fold(block.around_attention.before(stream)))
    query, key = turned(attention, query, past.depth - 1), turned(attention, key, past.depth - 1)
    layer = own[0].append(key), own[1].append(value)
    attended = attention.read(query, Memory(layer[0].view(), layer[1].view()), mask=past.mask())
    return block.around_attention.after(stream, attended.output.flatten(0, 1)), layer


def turned(attention: Attention, heads: Tensor, position: int) -> Tensor:
    """Rotated to one position, which all hypotheses are at."""
    if attention.rotary is None:
        return heads
    rotated: Tensor = attention.rotary(heads[..., None, :], start=position)
    return rotated[..., 0, :]


def read_source(
    block: DecoderBlock, stream: Float[Tensor, "row size"], source: Shared[tuple[Memory, ...]], memory: Memory
) -> tuple[Float[Tensor, "row size"], Alignment]:
    """Attention of one step to the source: the stream after it, and where it looked."""
    attended = block.source.attend(source.fold(block.around_source.before(stream)), memory)
    change = attended.output.flatten(0, 1)
    return block.around_source.after(stream, change), Averaged(attended.weights, (stream.shape[0],))
