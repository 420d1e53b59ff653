"""Convolutional decoders, all positions at once or one at a time over the last few inputs of each layer."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.attend import AttentionResult
from regard.compute.kernels.dropout import dropout
from regard.layers.attention import Attention
from regard.layers.memory import Memory
from regard.layers.projections import build_linear
from regard.models.convolution import ROOT_HALF, GatedConvolution
from regard.models.decoders.attention_checks import check_source_attention
from regard.models.embedding import TokenEmbedding
from regard.models.interface import Decoder, DecoderStep, EncoderOutput, MeanAlignment, TeacherForcingOutput
from regard.models.selection import SharedState


class ConvolutionalSource(NamedTuple):
    """The source as each stage reads it, and how much a sum over it is scaled up."""

    memories: tuple[Memory, ...]
    gain: Float[Tensor, "batch one two"]


class ConvolutionalState(NamedTuple):
    """What a convolutional decoder remembers: the source, and the last inputs of each filter."""

    source: SharedState[ConvolutionalSource]
    tails: tuple[Float[Tensor, "row before size"], ...]
    steps: int = 0


class ConvolutionalStage(nn.Module):
    r"""One layer: a filter over what was said, then a look at the source.

    $$ d_i = W_d h_i + g_i, \qquad c_i = \sum_j a_{ij} (z_j + e_j), \qquad h'_i = h_i + W_c c_i $$

    with $h$ = the filter's output, $g$ = the words, $a$ = the weights of $d$ over the keys $z$, $W_d$ = `ask` and $W_c$
    = `take`. Gehring et al. 2017, §3.3; $c$ is scaled by $m \sqrt{1/m}$ for $m$ positions, §3.5.
    """

    def __init__(
        self, convolution: GatedConvolution, attention: Attention, *, words: int, size: int, content: int
    ) -> None:
        super().__init__()
        check_source_attention(attention)
        self.convolution, self.attention = convolution, attention
        self.ask, self.take = build_linear(size, words), build_linear(content, size)

    def attend_source(
        self, stream: Float[Tensor, "batch query size"], words: Tensor, memory: Memory, gain: Tensor
    ) -> tuple[Tensor, AttentionResult]:
        """The stream after a look of each query at the source."""
        attended = self.attention.attend((self.ask(stream) + words) * ROOT_HALF, memory)
        return (stream + self.take(attended.output * gain)) * ROOT_HALF, attended


class ConvolutionalDecoder(Decoder[ConvolutionalState]):
    """Gated convolutions over what was said so far, each followed by a look at the source. Gehring et al. 2017.

    Weights are those of the last stage.
    """

    def __init__(
        self,
        words: TokenEmbedding,
        stages: Sequence[ConvolutionalStage],
        output: nn.Linear,
        *,
        size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words, self.output = words, output
        self.stages = cast(Sequence[ConvolutionalStage], nn.ModuleList(stages))
        self.widen, self.narrow = build_linear(words.width, size), build_linear(size, output.in_features)
        self.size, self.dropout = size, dropout

    def begin(self, encoded: EncoderOutput) -> ConvolutionalState:
        batch = encoded.states.shape[0]
        tails = [encoded.states.new_zeros(batch, stage.convolution.width - 1, self.size) for stage in self.stages]
        return ConvolutionalState(SharedState(self.remember(encoded), batch), tuple(tails))

    def remember(self, encoded: EncoderOutput) -> ConvolutionalSource:
        """The source as each stage reads it."""
        mask = encoded.mask
        parts = [stage.attention.remember(encoded.states, encoded.content, mask=mask) for stage in self.stages]
        return ConvolutionalSource(tuple(parts), encoded.lengths.to(encoded.states.dtype).sqrt()[:, None, None])

    def advance(self, token: Int[Tensor, " row"], state: ConvolutionalState) -> DecoderStep[ConvolutionalState]:
        shared, words = state.source, self.words(token[:, None], start=state.steps)
        stream, tails, weights = self.widen(words), [], None
        for stage, memory, tail in zip(self.stages, shared.part.memories, state.tails, strict=True):
            seen = torch.cat([tail, stream], dim=1)
            tails.append(seen[:, 1:])
            folded, asked = shared.fold(stage.convolution(seen)[:, 0]), shared.fold(words[:, 0])
            looked, attended = stage.attend_source(folded, asked, memory, shared.part.gain)
            stream = (looked.flatten(0, 1)[:, None] + stream) * ROOT_HALF
            weights = MeanAlignment(attended.weights, (token.shape[0],))
        vector = self.project_output(stream[:, 0])
        return DecoderStep(vector, ConvolutionalState(shared, tuple(tails), state.steps + 1), weights)

    def teacher_force(
        self, tokens: Int[Tensor, "batch target"], encoded: EncoderOutput, lengths: Int[Tensor, " batch"] | None = None
    ) -> TeacherForcingOutput:
        words, (memories, gain), weights = self.words(tokens), self.remember(encoded), None
        stream = self.widen(words)
        for stage, memory in zip(self.stages, memories, strict=True):
            seen = F.pad(stream, (0, 0, stage.convolution.width - 1, 0))
            looked, attended = stage.attend_source(stage.convolution(seen), words, memory, gain)
            stream = (looked + stream) * ROOT_HALF
            weights = MeanAlignment(attended.weights, tuple(tokens.shape))
        return TeacherForcingOutput(self.project_output(stream), weights)

    def project_output(self, stream: Tensor) -> Tensor:
        """What the output layer is given."""
        vector: Tensor = self.narrow(stream)
        return dropout(vector, self.dropout) if self.training else vector
