"""The gated convolution of convolutional encoders and decoders."""

from math import sqrt

import torch
import torch.nn.functional as F
from torch import nn

from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.dropout import dropout
from regard.models.config import ModelConfig

ROOT_HALF = sqrt(0.5)  # keeps the variance of a sum of two streams


class GatedConvolution(nn.Module):
    r"""A convolution whose second half of channels opens or closes the first.

    $$ [a; b] = W * x + c, \qquad v = a \odot \sigma(b) $$

    with `width` positions under the filter. Gehring et al. 2017, §3.2, with their scale at the start and without weight
    normalization. The caller pads: the output has `width` − 1 fewer positions.

    >>> GatedConvolution(4, width=3)(torch.ones(2, 5, 4)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(self, size: int, *, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.width, self.dropout = width, dropout
        self.weight = nn.Parameter(torch.empty(2 * size, size, width))
        nn.init.normal_(self.weight, std=sqrt(4 * (1 - dropout) / (width * size)))
        self.bias = nn.Parameter(torch.zeros(2 * size))

    def forward(self, stream: Float[Tensor, "batch length size"]) -> Float[Tensor, "batch shorter size"]:
        stream = dropout(stream, self.dropout) if self.training else stream
        return F.glu(F.conv1d(stream.transpose(1, 2), self.weight, self.bias), dim=1).transpose(1, 2)


def build_convolution(config: ModelConfig) -> GatedConvolution:
    """Build one convolution of a configuration."""
    shape = config.convolutional
    return GatedConvolution(shape.size, width=shape.width, dropout=config.dropout)
