"""Transformer decoders, all positions at once or one at a time over a cache."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import torch
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.layers.appendable import AppendableTensor
from regard.layers.attention import Attention
from regard.layers.blocks import DecoderBlock, DecoderBlockState
from regard.layers.memory import Memory
from regard.layers.projections import Projections
from regard.models.attention_builder import build_mechanism, build_self_attention
from regard.models.config import ModelConfig
from regard.models.decoders.attention_checks import check_source_attention
from regard.models.embedding import TokenEmbedding, build_token_embedding
from regard.models.exported_state import ROW, TARGET, StateTensor, assemble_memories, export_memories
from regard.models.interface import (
    Alignment,
    Decoder,
    DecoderStep,
    Encoder,
    EncoderOutput,
    MeanAlignment,
    TeacherForcingOutput,
)
from regard.models.key_value_cache import KeyValueCache
from regard.models.selection import SharedState
from regard.models.transformer_parts import build_block_parts, build_last_norm


class TransformerState(NamedTuple):
    """The source, projected for each block, and the keys and values of the tokens so far."""

    source: SharedState[tuple[Memory, ...]]
    cache: KeyValueCache


class TransformerDecoder(Decoder[TransformerState]):
    """Blocks of causal self-attention, attention to the source, and feed-forward. Vaswani et al. 2017, §3.1.

    One step reads the keys and values of the steps before from the state. Weights are those of the last block to the
    source, averaged over its heads.
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        blocks: Sequence[DecoderBlock],
        output: nn.Linear,
        *,
        norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        for block in blocks:
            check_source_attention(block.source)
        self.embedding, self.output = embedding, output
        self.blocks = cast(Sequence[DecoderBlock], nn.ModuleList(blocks))
        self.norm = nn.Identity() if norm is None else norm

    @property
    def counts_positions(self) -> bool:
        """Whether a block's self-attention depends on the index of a key."""
        return any(counts_positions(block.attention) for block in self.blocks)

    def begin(self, encoded: EncoderOutput) -> TransformerState:
        rows = encoded.states.shape[0]
        layers = [self.build_empty(block.attention, rows, encoded.states) for block in self.blocks]
        cache = KeyValueCache.create_empty(layers, alone=self.counts_positions)
        return TransformerState(SharedState(self.remember(encoded), rows), cache)

    def build_empty(self, attention: Attention, rows: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of no tokens. Their shape is that of one token's: a graph cannot project none."""
        vector = like.new_zeros(1, 1, self.embedding.width)
        pair = attention.projections.project_keys_values(vector, vector)
        key, value = (like.new_zeros(rows, *part.shape[1:-2], 0, part.shape[-1]) for part in pair)
        return key, value

    def remember(self, encoded: EncoderOutput) -> tuple[Memory, ...]:
        """Return the source projected for each block."""
        mask = encoded.mask
        return tuple(block.source.remember(encoded.states, encoded.content, mask=mask) for block in self.blocks)

    def advance(self, token: Int[Tensor, " row"], state: TransformerState) -> DecoderStep[TransformerState]:
        source, cache = state.source, state.cache
        stream = self.embedding(token[:, None], start=cache.depth)[:, 0]
        cache, layers, weights = cache.add_slots(), [], None
        for block, memory, layer in zip(self.blocks, source.part, cache.layers, strict=True):
            stream, later = attend_self(block, stream, cache, layer)
            layers.append(later)
            stream, weights = attend_source(block, stream, source, memory)
            stream = block.apply_feed_forward(stream)
        after = TransformerState(source, replace(cache, layers=tuple(layers)))
        return DecoderStep(self.norm(stream), after, weights)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        stream, weights = self.embedding(tokens), None
        for block, memory in zip(self.blocks, self.remember(encoded), strict=True):
            stream, _, _, cross = block(stream, DecoderBlockState(None, memory))
            weights = MeanAlignment(cross, tuple(tokens.shape))
        return TeacherForcingOutput(self.norm(stream), weights)

    def export_source(self, state: TransformerState, encoded: EncoderOutput) -> list[StateTensor]:
        return export_memories(state.source.part, encoded.lengths)

    def export_state(self, state: TransformerState, steps: Int[Tensor, " row"]) -> list[StateTensor]:
        pairs = [
            (f"past.{name}.{number}", part.view())
            for number, layer in enumerate(state.cache.layers)
            for name, part in zip(("key", "value"), layer, strict=True)
        ]
        return [StateTensor(name, tensor, {0: ROW, tensor.dim() - 2: TARGET}) for name, tensor in pairs]

    def assemble(self, tensors: Mapping[str, Tensor]) -> TransformerState:
        count = len(self.blocks)
        pairs = [(tensors[f"past.key.{n}"], tensors[f"past.value.{n}"]) for n in range(count)]
        rows, slots = pairs[0][0].shape[0], pairs[0][0].shape[-2]
        cache = replace(
            KeyValueCache.create_empty(pairs, alone=self.counts_positions),
            visible=torch.ones(rows, 1, slots, dtype=torch.bool),
            depth=slots,
        )
        return TransformerState(SharedState(assemble_memories(tensors, count), rows), cache)


def counts_positions(attention: Attention) -> bool:
    """Return whether an attention depends on the index of a key, beyond what is in the key itself."""
    mechanism = attention.mechanism
    sequential = mechanism.normalizer.form == "sequential"
    return mechanism.bias is not None or mechanism.score.uses_key_positions or sequential


def attend_self(
    block: DecoderBlock,
    stream: Float[Tensor, "row size"],
    cache: KeyValueCache,
    layer: tuple[AppendableTensor, AppendableTensor],
) -> tuple[Float[Tensor, "row size"], tuple[AppendableTensor, AppendableTensor]]:
    """Return the stream after the self-attention of one step, and the layer with this step's key and value.

    `cache` has the slots of this step already; the hypotheses of a sentence are its queries.
    """
    attention, residual = block.attention, block.attention_residual
    query, key, value = attention.projections.project_self(cache.fold(residual.prepare(stream)))
    query, key = rotate(attention, query, cache.depth - 1), rotate(attention, key, cache.depth - 1)
    layer = layer[0].append(key), layer[1].append(value)
    attended = attention.attend_heads(query, Memory(layer[0].view(), layer[1].view()), mask=cache.build_mask())
    return residual.combine(stream, attended.output.flatten(0, 1)), layer


def rotate(attention: Attention, heads: Tensor, position: int) -> Tensor:
    """Rotate heads to one position, which all hypotheses are at."""
    if attention.rotary is None:
        return heads
    rotated: Tensor = attention.rotary(heads[..., None, :], start=position)
    return rotated[..., 0, :]


def attend_source(
    block: DecoderBlock, stream: Float[Tensor, "row size"], source: SharedState[tuple[Memory, ...]], memory: Memory
) -> tuple[Float[Tensor, "row size"], Alignment]:
    """Return the stream after the cross-attention of one step, and its weights."""
    attended = block.source.attend(source.fold(block.source_residual.prepare(stream)), memory)
    change = attended.output.flatten(0, 1)
    return block.source_residual.combine(stream, change), MeanAlignment(attended.weights, (stream.shape[0],))


def build_transformer(
    config: ModelConfig, table: nn.Embedding, encoder: Encoder, output: nn.Linear
) -> TransformerDecoder:
    """Build the decoder of a configuration."""
    embedding = build_token_embedding(config, table, "transformer")
    blocks = [build_block(config, encoder) for _ in range(config.transformer.decoder_layers)]
    return TransformerDecoder(embedding, blocks, output, norm=build_last_norm(config))


def build_block(config: ModelConfig, encoder: Encoder) -> DecoderBlock:
    """Build one block of a configuration."""
    shape = config.transformer
    mechanism = build_mechanism(config, shape.source_score, shape.source_normalizer)
    attention = build_self_attention(config)
    projections = Projections.linear(
        config.size, heads=shape.heads, groups=shape.groups, source=encoder.width, content=encoder.content
    )
    source = Attention(projections, mechanism=mechanism, dropout=shape.attention_dropout)
    return DecoderBlock(config.size, attention=attention, source=source, **build_block_parts(config))
