"""Images behind the encoder's interface: the regions of a grid are the positions of a source."""

import torch
from torch import nn

from regard.layers.memory import cleaned
from regard.layers.positions import Learned
from regard.layers.projections import dense
from regard.models.interface import Encoded, Encoder
from regard.models.pooling import mean
from regard.numerics.dropout import dropout
from regard.shapes import Float, Int, Tensor

MIDDLE = 0.5  # of pixels that go from 0 to 1


class GridEncoder(Encoder):
    r"""Regions of an image, as what a decoder reads.

    $$ a_i = \mathrm{ReLU}(W f_i) + p_i, \qquad \bar a = \frac{1}{L} \sum_i a_i $$

    with $f$ = what `network` makes of the source (the source itself, where it holds features already), $W$ =
    `project`, $p$ = `places` (a learned vector for each region) and $\bar a$ = the summary. Xu et al. 2015, §3.1.1,
    where the network ends with convolutions so that a region keeps its place.

    >>> encoder = GridEncoder(nn.Identity(), channels=3, width=5, regions=7)
    >>> encoder(torch.ones(2, 7, 3), torch.tensor([7, 7])).summary.shape
    torch.Size([2, 5])
    """

    def __init__(self, network: nn.Module, *, channels: int, width: int, regions: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.network, self.project = network, dense(channels, width)
        self.places = Learned(regions, width)
        self.width = self.summary = width
        self.regions, self.dropout = regions, dropout

    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> Encoded:
        features = self.network(source)
        if self.training:
            features = dropout(features, self.dropout)
        states = self.places(torch.relu(self.project(features)))
        if self.training:
            states = dropout(states, self.dropout)
        encoded = Encoded(states, lengths, mean(states, lengths))
        return encoded._replace(states=cleaned(states, encoded.mask))


class SmallNetwork(nn.Module):
    """A few convolutions that halve the image each: learned with the task, for drawings.

    >>> SmallNetwork((5, 7))(torch.ones(2, 3, 8, 12)).shape
    torch.Size([2, 6, 7])
    """

    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        for before, after in zip((3, *channels), channels, strict=False):
            # The norm is over each image alone: an image means the same whatever else is in the batch.
            parts += [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(1, after), nn.ReLU(), nn.MaxPool2d(2)]
        self.layers = nn.Sequential(*parts)

    def forward(self, image: Float[Tensor, "batch 3 height width"]) -> Float[Tensor, "batch region channels"]:
        grid: Tensor = self.layers((image - MIDDLE) / MIDDLE)
        return grid.flatten(2).transpose(1, 2)
