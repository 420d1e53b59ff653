"""Convolutional encoders."""

from collections.abc import Sequence
from typing import cast

import torch.nn.functional as F
from torch import nn

from regard.algebra.shapes import Int, Tensor
from regard.layers.memory import cleaned
from regard.layers.projections import dense
from regard.models.convolution import HALF, GatedConvolution
from regard.models.interface import Encoded, Encoder
from regard.models.pooling import mean


class ConvolutionalEncoder(Encoder):
    r"""Gated convolutions over the source, each with a residual connection.

    $$ h^0 = W e, \qquad h^l = v(h^{l-1}) + h^{l-1}, \qquad z = W' h^L $$

    with $e$ = the words with their positions, $v$ = `convolutions`, $W$ = `widen`, $W'$ = `narrow`. Keys are $z$, and
    what is read is $z + e$. Gehring et al. 2017, §3.2-3.3; sums of two streams are scaled by √½. The `summary` is the
    mean of what is read.

    >>> from regard.models.words import Words
    >>> encoder = ConvolutionalEncoder(Words(nn.Embedding(7, 6)), [GatedConvolution(4, width=3)], words=6, size=4)
    >>> encoder(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1])).states.shape
    torch.Size([2, 2, 6])
    """

    def __init__(self, embed: nn.Module, convolutions: Sequence[GatedConvolution], *, words: int, size: int) -> None:
        super().__init__()
        self.words = embed
        self.convolutions = cast(Sequence[GatedConvolution], nn.ModuleList(convolutions))
        self.widen, self.narrow = dense(words, size), dense(size, words)
        self.width = self.summary = words

    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> Encoded:
        words: Tensor = self.words(source)
        real = Encoded(words, lengths, words[:, 0]).mask
        stream = self.widen(words)
        for convolution in self.convolutions:
            # Zeros for padding, before each filter: it must not see what lies behind a sentence.
            stream = cleaned(stream, real)
            left, right = convolution.width // 2, (convolution.width - 1) // 2
            stream = (convolution(F.pad(stream, (0, 0, left, right))) + stream) * HALF
        states = cleaned(self.narrow(stream), real)
        content = (states + cleaned(words, real)) * HALF
        return Encoded(states, lengths, mean(content, lengths), content)
