"""Encoders of images: the regions of a grid are the positions of a source."""

import torch
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.dropout import dropout
from regard.layers.memory import zero_padding
from regard.layers.positions import LearnedPositions
from regard.layers.projections import build_linear
from regard.models.interface import Encoder, EncoderOutput, mean_pool

MIDDLE = 0.5  # of pixels that go from 0 to 1


class GridEncoder(Encoder):
    r"""Regions of an image, which a decoder attends to.

    $$ a_i = \mathrm{ReLU}(W f_i) + p_i, \qquad \bar a = \frac{1}{L} \sum_i a_i $$

    with $f$ = the output of `network` (the identity, if the source holds features already), $W$ = `project`, $p$ =
    `positions` (a learned vector for each region) and $\bar a$ = the summary. Xu et al. 2015, §3.1.1: the network ends
    with convolutions, so that a region keeps its position.

    >>> encoder = GridEncoder(nn.Identity(), channels=3, width=5, regions=7)
    >>> encoder(torch.ones(2, 7, 3), torch.tensor([7, 7])).summary.shape
    torch.Size([2, 5])
    """

    def __init__(self, network: nn.Module, *, channels: int, width: int, regions: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.network, self.project = network, build_linear(channels, width)
        self.positions = LearnedPositions(regions, width)
        self.width = self.summary = width
        self.regions, self.dropout = regions, dropout

    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        features = self.network(source)
        if self.training:
            features = dropout(features, self.dropout)
        states = self.positions(torch.relu(self.project(features)))
        if self.training:
            states = dropout(states, self.dropout)
        encoded = EncoderOutput(states, lengths, mean_pool(states, lengths))
        return encoded._replace(states=zero_padding(states, encoded.mask))


class SmallNetwork(nn.Module):
    """Convolutions that each halve the image, trained with the task: for drawings.

    >>> SmallNetwork((5, 7))(torch.ones(2, 3, 8, 12)).shape
    torch.Size([2, 6, 7])
    """

    def __init__(self, channels: tuple[int, ...], *, colors: int = 3) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        for before, after in zip((colors, *channels), channels, strict=False):
            # The norm is over each image alone: an image means the same whatever else is in the batch.
            parts += [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(1, after), nn.ReLU(), nn.MaxPool2d(2)]
        self.layers = nn.Sequential(*parts)

    def forward(self, image: Float[Tensor, "batch colors height width"]) -> Float[Tensor, "batch region channels"]:
        grid: Tensor = self.layers((image - MIDDLE) / MIDDLE)
        return grid.flatten(2).transpose(1, 2)


class Coordinates(nn.Module):
    """Adds two channels, the coordinates of each pixel, down and across, from 0 to 1. Liu et al. 2018 (*CoordConv*).

    The first convolution can then tell left from right, which would otherwise be learned region by region.

    >>> Coordinates()(torch.zeros(1, 3, 2, 3))[0, 3:]
    tensor([[[0.0000, 0.0000, 0.0000],
             [1.0000, 1.0000, 1.0000]],
            [[0.0000, 0.5000, 1.0000],
             [0.0000, 0.5000, 1.0000]]])
    """

    def forward(self, image: Float[Tensor, "batch colors height width"]) -> Float[Tensor, "batch more height width"]:
        height, width = image.shape[-2:]
        down, across = (torch.linspace(0, 1, size).to(image) for size in (height, width))
        coordinates = torch.stack(torch.meshgrid(down, across, indexing="ij"))
        return torch.cat([image, coordinates.expand(len(image), -1, -1, -1)], dim=1)
