"""Convolutional decoders, all positions at once or one at a time over the last few inputs of each layer."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.attend import AttentionResult
from regard.compute.kernels.dropout import dropout
from regard.layers.attention import Attention
from regard.layers.memory import Memory
from regard.layers.projections import build_linear
from regard.models.attention_builder import build_cross_attention
from regard.models.config import ModelConfig
from regard.models.convolution import ROOT_HALF, GatedConvolution, build_convolution
from regard.models.decoders.attention_checks import check_source_attention
from regard.models.embedding import TokenEmbedding, build_token_embedding
from regard.models.exported_state import ROW, StateTensor, assemble_memories, export_memories
from regard.models.interface import Decoder, DecoderStep, Encoder, EncoderOutput, MeanAlignment, TeacherForcingOutput
from regard.models.selection import SharedState


class ConvolutionalSource(NamedTuple):
    """The source projected for each stage, and the factor of the contexts."""

    memories: tuple[Memory, ...]
    gain: Float[Tensor, "batch one two"]


class ConvolutionalState(NamedTuple):
    """The source, and the last inputs of each filter."""

    source: SharedState[ConvolutionalSource]
    tails: tuple[Float[Tensor, "row before size"], ...]
    steps: int = 0


class ConvolutionalStage(nn.Module):
    r"""One layer: a filter over the tokens so far, then attention to the source.

    $$ d_i = W_d h_i + g_i, \qquad c_i = \sum_j a_{ij} (z_j + e_j), \qquad h'_i = h_i + W_c c_i $$

    with $h$ = the filter's output, $g$ = the tokens' vectors, $a$ = the weights of $d$ over the keys $z$, $W_d$ =
    `query` and $W_c$ = `context`. Gehring et al. 2017, §3.3; $c$ is scaled by $m \sqrt{1/m}$ for $m$ positions, §3.5.
    """

    def __init__(
        self, convolution: GatedConvolution, attention: Attention, *, width: int, size: int, content: int
    ) -> None:
        super().__init__()
        check_source_attention(attention)
        attention.role = "cross"
        self.convolution, self.attention = convolution, attention
        self.query, self.context = build_linear(size, width), build_linear(content, size)

    def attend_source(
        self, stream: Float[Tensor, "batch query size"], vectors: Tensor, memory: Memory, gain: Tensor
    ) -> tuple[Tensor, AttentionResult]:
        """Return the stream after attention to the source, and the attention."""
        attended = self.attention.attend((self.query(stream) + vectors) * ROOT_HALF, memory)
        return (stream + self.context(attended.output * gain)) * ROOT_HALF, attended


class ConvolutionalDecoder(Decoder[ConvolutionalState]):
    """Gated convolutions over the tokens so far, each followed by attention to the source. Gehring et al. 2017.

    Weights are those of the last stage.
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        stages: Sequence[ConvolutionalStage],
        output: nn.Linear,
        *,
        size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.output = embedding, output
        self.stages = cast(Sequence[ConvolutionalStage], nn.ModuleList(stages))
        self.widen, self.narrow = build_linear(embedding.width, size), build_linear(size, output.in_features)
        self.size, self.dropout = size, dropout

    def begin(self, encoded: EncoderOutput) -> ConvolutionalState:
        batch = encoded.states.shape[0]
        tails = [encoded.states.new_zeros(batch, stage.convolution.width - 1, self.size) for stage in self.stages]
        return ConvolutionalState(SharedState(self.remember(encoded), batch), tuple(tails))

    def remember(self, encoded: EncoderOutput) -> ConvolutionalSource:
        """Return the source projected for each stage."""
        mask = encoded.mask
        parts = [stage.attention.remember(encoded.states, encoded.content, mask=mask) for stage in self.stages]
        return ConvolutionalSource(tuple(parts), compute_gain(encoded.lengths, encoded.states))

    def advance(self, token: Int[Tensor, " row"], state: ConvolutionalState) -> DecoderStep[ConvolutionalState]:
        shared, vectors = state.source, self.embedding(token[:, None], start=state.steps)
        stream, tails, weights = self.widen(vectors), [], None
        for stage, memory, tail in zip(self.stages, shared.part.memories, state.tails, strict=True):
            inputs = torch.cat([tail, stream], dim=1)
            tails.append(inputs[:, 1:])
            filtered, folded = shared.fold(stage.convolution(inputs)[:, 0]), shared.fold(vectors[:, 0])
            change, attended = stage.attend_source(filtered, folded, memory, shared.part.gain)
            stream = (change.flatten(0, 1)[:, None] + stream) * ROOT_HALF
            weights = MeanAlignment(attended.weights, (token.shape[0],))
        vector = self.project_output(stream[:, 0])
        return DecoderStep(vector, ConvolutionalState(shared, tuple(tails), state.steps + 1), weights)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        vectors, (memories, gain), weights = self.embedding(tokens), self.remember(encoded), None
        stream = self.widen(vectors)
        for stage, memory in zip(self.stages, memories, strict=True):
            inputs = F.pad(stream, (0, 0, stage.convolution.width - 1, 0))
            change, attended = stage.attend_source(stage.convolution(inputs), vectors, memory, gain)
            stream = (change + stream) * ROOT_HALF
            weights = MeanAlignment(attended.weights, tuple(tokens.shape))
        return TeacherForcingOutput(self.project_output(stream), weights)

    def project_output(self, stream: Tensor) -> Tensor:
        """Return the vectors for the output layer."""
        vector: Tensor = self.narrow(stream)
        return dropout(vector, self.dropout) if self.training else vector

    def export_source(self, state: ConvolutionalState, encoded: EncoderOutput) -> list[StateTensor]:
        return export_memories(state.source.part.memories, encoded.lengths)

    def export_state(self, state: ConvolutionalState, steps: Int[Tensor, " row"]) -> list[StateTensor]:
        tails = [StateTensor(f"tail.{number}", tail, {0: ROW}) for number, tail in enumerate(state.tails)]
        return [*tails, StateTensor("steps", steps, {0: ROW})]

    def assemble(self, tensors: Mapping[str, Tensor]) -> ConvolutionalState:
        count = len(self.stages)
        memories, tails = assemble_memories(tensors, count), tuple(tensors[f"tail.{n}"] for n in range(count))
        source = ConvolutionalSource(memories, compute_gain(tensors["lengths"], memories[0].key))
        steps: Any = tensors["steps"][0]
        return ConvolutionalState(SharedState(source, tails[0].shape[0]), tails, steps)


def compute_gain(lengths: Int[Tensor, " batch"], like: Tensor) -> Float[Tensor, "batch 1 1"]:
    """Return the factor of the contexts: the root of the number of positions."""
    return lengths.to(like.dtype).sqrt()[:, None, None]


def build_convolutional(
    config: ModelConfig, table: nn.Embedding, encoder: Encoder, output: nn.Linear
) -> ConvolutionalDecoder:
    """Build the decoder of a configuration."""
    embedding, size = build_token_embedding(config, table, "convolutional"), config.convolutional.size
    stages = [build_stage(config, encoder) for _ in range(config.convolutional.decoder_layers)]
    return ConvolutionalDecoder(embedding, stages, output, size=size, dropout=config.dropout)


def build_stage(config: ModelConfig, encoder: Encoder) -> ConvolutionalStage:
    """Build one stage of a configuration."""
    attention = build_cross_attention(config, config.size, encoder)
    convolution, size = build_convolution(config), config.convolutional.size
    return ConvolutionalStage(convolution, attention, width=config.size, size=size, content=encoder.content)
