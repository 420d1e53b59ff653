"""Transformer decoders, all positions at once or one at a time over a cache."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.layers.attention import Attention
from regard.layers.blocks import DecoderBlock, DecoderBlockState
from regard.layers.memory import Memory
from regard.models.decoders.attention_checks import check_source_attention
from regard.models.embedding import TokenEmbedding
from regard.models.interface import Alignment, Decoder, DecoderStep, EncoderOutput, MeanAlignment, TeacherForcingOutput
from regard.models.key_value_cache import AppendableTensor, KeyValueCache
from regard.models.selection import SharedState


class TransformerState(NamedTuple):
    """What a Transformer decoder remembers: the source, projected for each block, and its own past."""

    source: SharedState[tuple[Memory, ...]]
    cache: KeyValueCache


class TransformerDecoder(Decoder[TransformerState]):
    """Blocks of causal self-attention, attention to the source, and feed-forward. Vaswani et al. 2017, §3.1.

    One step reads the keys and values of the steps before from the state. Weights are those of the last block to the
    source, averaged over its heads.
    """

    def __init__(
        self, words: TokenEmbedding, blocks: Sequence[DecoderBlock], output: nn.Linear, *, norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        for block in blocks:
            check_source_attention(block.source)
        self.words, self.output = words, output
        self.blocks = cast(Sequence[DecoderBlock], nn.ModuleList(blocks))
        self.norm = nn.Identity() if norm is None else norm

    def begin(self, encoded: EncoderOutput) -> TransformerState:
        empty = encoded.states.new_empty(encoded.states.shape[0], 0, self.words.width)
        past = [block.attention.projections.project_keys_values(empty, empty) for block in self.blocks]
        alone = any(counts_positions(block.attention) for block in self.blocks)
        sources = SharedState(self.remember(encoded), encoded.states.shape[0])
        return TransformerState(sources, KeyValueCache.create_empty(past, alone=alone))

    def remember(self, encoded: EncoderOutput) -> tuple[Memory, ...]:
        """The source as each block reads it."""
        mask = encoded.mask
        return tuple(block.source.remember(encoded.states, encoded.content, mask=mask) for block in self.blocks)

    def advance(self, token: Int[Tensor, " row"], state: TransformerState) -> DecoderStep[TransformerState]:
        source, past = state.source, state.cache
        stream = self.words(token[:, None], start=past.depth)[:, 0]
        past, layers, weights = past.add_slots(), [], None
        for block, memory, own in zip(self.blocks, source.part, past.layers, strict=True):
            stream, layer = attend_self(block, stream, past, own)
            layers.append(layer)
            stream, weights = attend_source(block, stream, source, memory)
            stream = block.around_forward.combine(stream, block.feed_forward(block.around_forward.prepare(stream)))
        later = TransformerState(source, replace(past, layers=tuple(layers)))
        return DecoderStep(self.norm(stream), later, weights)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        stream, weights = self.words(tokens), None
        for block, memory in zip(self.blocks, self.remember(encoded), strict=True):
            stream, _, _, looked = block(stream, DecoderBlockState(None, memory))
            weights = MeanAlignment(looked, tuple(tokens.shape))
        return TeacherForcingOutput(self.norm(stream), weights)


def counts_positions(attention: Attention) -> bool:
    """Whether the place of a key among the keys matters to it, beyond what the key itself says."""
    mechanism = attention.mechanism
    sequential = mechanism.normalizer.form == "sequential"
    return mechanism.bias is not None or mechanism.score.uses_key_positions or sequential


def attend_self(
    block: DecoderBlock,
    stream: Float[Tensor, "row size"],
    past: KeyValueCache,
    own: tuple[AppendableTensor, AppendableTensor],
) -> tuple[Float[Tensor, "row size"], tuple[AppendableTensor, AppendableTensor]]:
    """Self-attention of one step: the stream after it, and the layer's keys and values with those of this step.

    `cache` is that of after this step; the hypotheses of a sentence ask as its queries.
    """
    attention = block.attention
    query, key, value = attention.projections.project_self(past.fold(block.around_attention.prepare(stream)))
    query, key = rotate(attention, query, past.depth - 1), rotate(attention, key, past.depth - 1)
    layer = own[0].append(key), own[1].append(value)
    attended = attention.attend_heads(query, Memory(layer[0].view(), layer[1].view()), mask=past.build_mask())
    return block.around_attention.combine(stream, attended.output.flatten(0, 1)), layer


def rotate(attention: Attention, heads: Tensor, position: int) -> Tensor:
    """Rotated to one position, which all hypotheses are at."""
    if attention.rotary is None:
        return heads
    rotated: Tensor = attention.rotary(heads[..., None, :], start=position)
    return rotated[..., 0, :]


def attend_source(
    block: DecoderBlock, stream: Float[Tensor, "row size"], source: SharedState[tuple[Memory, ...]], memory: Memory
) -> tuple[Float[Tensor, "row size"], Alignment]:
    """Attention of one step to the source: the stream after it, and where it looked."""
    attended = block.source.attend(source.fold(block.around_source.prepare(stream)), memory)
    change = attended.output.flatten(0, 1)
    return block.around_source.combine(stream, change), MeanAlignment(attended.weights, (stream.shape[0],))
