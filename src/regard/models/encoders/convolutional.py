"""Convolutional encoders."""

from collections.abc import Sequence
from typing import cast

import torch.nn.functional as F
from torch import nn

from regard.algebra.shapes import Int, Tensor
from regard.layers.memory import zero_padding
from regard.layers.projections import build_linear
from regard.models.config import ModelConfig
from regard.models.convolution import ROOT_HALF, GatedConvolution, build_convolution
from regard.models.embedding import build_token_embedding
from regard.models.interface import Encoder, EncoderOutput, build_padding_mask, mean_pool


class ConvolutionalEncoder(Encoder):
    r"""Gated convolutions over the source, each with a residual connection.

    $$ h^0 = W e, \qquad h^l = v(h^{l-1}) + h^{l-1}, \qquad z = W' h^L $$

    with $e$ = the tokens' vectors of `width` numbers, $v$ = `convolutions` of `size` channels, $W$ = `widen` and $W'$ =
    `narrow`. Keys are $z$, values $z + e$. Gehring et al. 2017, §3.2-3.3; sums of two streams are scaled by √½. The
    `summary` is the mean of the values.

    >>> from regard.models.embedding import TokenEmbedding
    >>> embedding, convolution = TokenEmbedding(nn.Embedding(7, 6)), GatedConvolution(4, width=3)
    >>> encoder = ConvolutionalEncoder(embedding, [convolution], width=6, size=4)
    >>> encoder(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1])).states.shape
    torch.Size([2, 2, 6])
    """

    def __init__(
        self, embedding: nn.Module, convolutions: Sequence[GatedConvolution], *, width: int, size: int
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.convolutions = cast(Sequence[GatedConvolution], nn.ModuleList(convolutions))
        self.widen, self.narrow = build_linear(width, size), build_linear(size, width)
        self.width = self.summary = width

    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        vectors: Tensor = self.embedding(source)
        real = build_padding_mask(lengths, vectors.shape[1])
        stream = self.widen(vectors)
        for convolution in self.convolutions:
            # Zeros for padding before each filter, which must not see what is behind the end of a sentence.
            stream = zero_padding(stream, real)
            left, right = convolution.width // 2, (convolution.width - 1) // 2
            stream = (convolution(F.pad(stream, (0, 0, left, right))) + stream) * ROOT_HALF
        states = zero_padding(self.narrow(stream), real)
        content = (states + zero_padding(vectors, real)) * ROOT_HALF
        return EncoderOutput(states, lengths, mean_pool(content, lengths), content)


def build_convolutional(config: ModelConfig, table: nn.Embedding) -> ConvolutionalEncoder:
    """Build the encoder of a configuration."""
    embedding = build_token_embedding(config, table, "convolutional")
    convolutions = [build_convolution(config) for _ in range(config.convolutional.layers)]
    return ConvolutionalEncoder(embedding, convolutions, width=config.size, size=config.convolutional.size)
