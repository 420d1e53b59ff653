"""Convolutional decoders, all positions at once or one at a time over the last few inputs of each layer."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.attend import Attended
from regard.compute.kernels.dropout import dropout
from regard.layers.attention import Attention
from regard.layers.memory import Memory
from regard.layers.projections import dense
from regard.models.convolution import HALF, GatedConvolution
from regard.models.decoders.parts import check_source
from regard.models.interface import Advanced, Averaged, Decoder, Encoded, Taught
from regard.models.selecting import Shared
from regard.models.words import Words


class Source(NamedTuple):
    """The source as each stage reads it, and how much a sum over it is scaled up."""

    memories: tuple[Memory, ...]
    gain: Float[Tensor, "batch one two"]


class ConvolutionalState(NamedTuple):
    """What a convolutional decoder remembers: the source, and the last inputs of each filter."""

    source: Shared[Source]
    tails: tuple[Float[Tensor, "row before size"], ...]
    steps: int = 0


class Stage(nn.Module):
    r"""One layer: a filter over what was said, then a look at the source.

    $$ d_i = W_d h_i + g_i, \qquad c_i = \sum_j a_{ij} (z_j + e_j), \qquad h'_i = h_i + W_c c_i $$

    with $h$ = the filter's output, $g$ = the words, $a$ = the weights of $d$ over the keys $z$, $W_d$ = `ask` and $W_c$
    = `take`. Gehring et al. 2017, §3.3; $c$ is scaled by $m \sqrt{1/m}$ for $m$ positions, §3.5.
    """

    def __init__(
        self, convolution: GatedConvolution, attention: Attention, *, words: int, size: int, content: int
    ) -> None:
        super().__init__()
        check_source(attention)
        self.convolution, self.attention = convolution, attention
        self.ask, self.take = dense(size, words), dense(content, size)

    def look(
        self, stream: Float[Tensor, "batch query size"], words: Tensor, memory: Memory, gain: Tensor
    ) -> tuple[Tensor, Attended]:
        """The stream after a look of each query at the source."""
        attended = self.attention.attend((self.ask(stream) + words) * HALF, memory)
        return (stream + self.take(attended.output * gain)) * HALF, attended


class ConvolutionalDecoder(Decoder[ConvolutionalState]):
    """Gated convolutions over what was said so far, each followed by a look at the source. Gehring et al. 2017.

    Weights are those of the last stage.
    """

    def __init__(
        self, words: Words, stages: Sequence[Stage], output: nn.Linear, *, size: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.words, self.output = words, output
        self.stages = cast(Sequence[Stage], nn.ModuleList(stages))
        self.widen, self.narrow = dense(words.width, size), dense(size, output.in_features)
        self.size, self.dropout = size, dropout

    def begin(self, encoded: Encoded) -> ConvolutionalState:
        batch = encoded.states.shape[0]
        tails = [encoded.states.new_zeros(batch, stage.convolution.width - 1, self.size) for stage in self.stages]
        return ConvolutionalState(Shared(self.remember(encoded), batch), tuple(tails))

    def remember(self, encoded: Encoded) -> Source:
        """The source as each stage reads it."""
        mask = encoded.mask
        parts = [stage.attention.remember(encoded.states, encoded.content, mask=mask) for stage in self.stages]
        return Source(tuple(parts), encoded.lengths.to(encoded.states.dtype).sqrt()[:, None, None])

    def advance(self, token: Int[Tensor, " row"], state: ConvolutionalState) -> Advanced[ConvolutionalState]:
        shared, words = state.source, self.words(token[:, None], start=state.steps)
        stream, tails, weights = self.widen(words), [], None
        for stage, memory, tail in zip(self.stages, shared.part.memories, state.tails, strict=True):
            seen = torch.cat([tail, stream], dim=1)
            tails.append(seen[:, 1:])
            folded, asked = shared.fold(stage.convolution(seen)[:, 0]), shared.fold(words[:, 0])
            looked, attended = stage.look(folded, asked, memory, shared.part.gain)
            stream = (looked.flatten(0, 1)[:, None] + stream) * HALF
            weights = Averaged(attended.weights, (token.shape[0],))
        vector = self.told(stream[:, 0])
        return Advanced(vector, ConvolutionalState(shared, tuple(tails), state.steps + 1), weights)

    def teach(
        self, tokens: Int[Tensor, "batch target"], encoded: Encoded, lengths: Int[Tensor, " batch"] | None = None
    ) -> Taught:
        words, (memories, gain), weights = self.words(tokens), self.remember(encoded), None
        stream = self.widen(words)
        for stage, memory in zip(self.stages, memories, strict=True):
            seen = F.pad(stream, (0, 0, stage.convolution.width - 1, 0))
            looked, attended = stage.look(stage.convolution(seen), words, memory, gain)
            stream = (looked + stream) * HALF
            weights = Averaged(attended.weights, tuple(tokens.shape))
        return Taught(self.told(stream), weights)

    def told(self, stream: Tensor) -> Tensor:
        """What the output layer is given."""
        vector: Tensor = self.narrow(stream)
        return dropout(vector, self.dropout) if self.training else vector
