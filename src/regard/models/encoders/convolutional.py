"""Convolutional encoders."""

from collections.abc import Sequence
from typing import cast

import torch.nn.functional as F
from torch import nn

from regard.algebra.shapes import Int, Tensor
from regard.layers.memory import zero_padding
from regard.layers.projections import build_linear
from regard.models.convolution import ROOT_HALF, GatedConvolution
from regard.models.interface import Encoder, EncoderOutput
from regard.models.pooling import mean_pool


class ConvolutionalEncoder(Encoder):
    r"""Gated convolutions over the source, each with a residual connection.

    $$ h^0 = W e, \qquad h^l = v(h^{l-1}) + h^{l-1}, \qquad z = W' h^L $$

    with $e$ = the words with their positions, $v$ = `convolutions`, $W$ = `widen`, $W'$ = `narrow`. Keys are $z$, and
    what is read is $z + e$. Gehring et al. 2017, §3.2-3.3; sums of two streams are scaled by √½. The `summary` is the
    mean of what is read.

    >>> from regard.models.embedding import TokenEmbedding
    >>> encoder = ConvolutionalEncoder(TokenEmbedding(nn.Embedding(7, 6)), [GatedConvolution(4, width=3)], words=6, size=4)
    >>> encoder(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1])).states.shape
    torch.Size([2, 2, 6])
    """

    def __init__(self, embed: nn.Module, convolutions: Sequence[GatedConvolution], *, words: int, size: int) -> None:
        super().__init__()
        self.words = embed
        self.convolutions = cast(Sequence[GatedConvolution], nn.ModuleList(convolutions))
        self.widen, self.narrow = build_linear(words, size), build_linear(size, words)
        self.width = self.summary = words

    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        words: Tensor = self.words(source)
        real = EncoderOutput(words, lengths, words[:, 0]).mask
        stream = self.widen(words)
        for convolution in self.convolutions:
            # Zeros for padding, before each filter: it must not see what lies behind a sentence.
            stream = zero_padding(stream, real)
            left, right = convolution.width // 2, (convolution.width - 1) // 2
            stream = (convolution(F.pad(stream, (0, 0, left, right))) + stream) * ROOT_HALF
        states = zero_padding(self.narrow(stream), real)
        content = (states + zero_padding(words, real)) * ROOT_HALF
        return EncoderOutput(states, lengths, mean_pool(content, lengths), content)
