"""Networks that classify pictures, with their attention."""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.algebra.catalog import Sizes
from regard.layers.gated import GatedHeads
from regard.layers.pooling import Pooling
from regard.tasks.digits.config import DigitsModel
from regard.tasks.mechanisms import build_catalog_mechanism

CLASSES = 10
MAX_SIDE = 7  # regions in a row, at most: pictures are halved until they fit


class DigitsOutput(NamedTuple):
    """What a network makes of pictures.

    `weights` are `(batch, steps, heads, rows, columns)`, or none if it has no attention; `gates` are
    how much of each look was let in.
    """

    logits: Tensor
    weights: Tensor | None
    gates: Tensor | None


class PictureEncoder(nn.Module):
    """A small convolution: pictures in, a vector for each region out, no more than seven regions in a row.

    Pictures are halved as late as possible, so that little is lost, but before the last layer.
    """

    def __init__(self, channels: tuple[int, ...], side: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(*pair, 3, padding=1) for pair in pairwise((1, *channels)))
        self.norms = nn.ModuleList(nn.GroupNorm(1, size) for size in channels)
        self.side, halvings = side, 0
        while self.side > MAX_SIDE and halvings < len(channels) - 1:
            self.side, halvings = self.side // 2, halvings + 1
        self.halved = range(len(channels) - 1 - halvings, len(channels) - 1)

    def forward(self, pictures: Tensor) -> Tensor:
        places = pictures[:, None]
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            places = F.relu(norm(layer(places)))
            if number in self.halved:
                places = F.max_pool2d(places, 2)
        return places.flatten(2).transpose(1, 2)


class ReducedHeads(GatedHeads):
    """Gated heads without the gate, or without the memory; the parameters are the same."""

    gated, remembers = True, True

    def compute_gate(self, features: Tensor) -> Tensor:
        gate = super().compute_gate(features)
        return gate if self.gated else torch.ones_like(gate)

    def keep(self, kept: Tensor, context: Tensor) -> Tensor:
        return super().keep(kept if self.remembers else torch.zeros_like(kept), context)


class GatedClassifier(nn.Module):
    """Gated heads with a memory, several glimpses (`regard.layers.gated`)."""

    def __init__(self, config: DigitsModel, side: int) -> None:
        super().__init__()
        self.places = PictureEncoder(config.channels, side)
        size, count = config.channels[-1], self.places.side**2
        sizes = Sizes(config.hidden, config.hidden, size, lead=(config.heads,), keys=count)
        self.heads = ReducedHeads(
            size,
            CLASSES,
            heads=config.heads,
            hidden=config.hidden,
            positions=count,
            steps=config.steps,
            mechanism=None if config.score == "own" else build_catalog_mechanism(config.score, sizes),
        )
        self.heads.gated, self.heads.remembers = config.gate, config.memory

    def forward(self, pictures: Tensor) -> DigitsOutput:
        gated = self.heads(self.places(pictures))
        weights = gated.weights.unflatten(-1, (self.places.side, self.places.side))
        return DigitsOutput(gated.output, weights, gated.gates)


class PoolingClassifier(nn.Module):
    """Learned queries that each attend to the regions once."""

    def __init__(self, config: DigitsModel, side: int) -> None:
        super().__init__()
        self.places = PictureEncoder(config.channels, side)
        size = config.channels[-1]
        self.position = nn.Parameter(torch.empty(self.places.side**2, size).normal_(std=0.1))
        width = config.hidden if config.kind == "additive-pooling" else size
        sizes = Sizes(width, width, size, keys=self.places.side**2)
        mechanism = None if config.score == "own" else build_catalog_mechanism(config.score, sizes)
        if config.kind == "additive-pooling":
            self.pooling = Pooling.additive(size, config.hidden, queries=config.heads, mechanism=mechanism)
        else:
            self.pooling = Pooling(size, queries=config.heads, mechanism=mechanism)
        self.answer = nn.Sequential(
            nn.Linear(config.heads * size, config.hidden), nn.ReLU(), nn.Linear(config.hidden, CLASSES)
        )

    def forward(self, pictures: Tensor) -> DigitsOutput:
        attended = self.pooling.attend(self.places(pictures) + self.position)
        weights = attended.weights.dense().unflatten(-1, (self.places.side, self.places.side))
        return DigitsOutput(self.answer(attended.output.flatten(1)), weights[:, None], None)


class ConvolutionClassifier(nn.Module):
    """The convolution of gated heads, and one hidden layer over all its regions in place of attention."""

    def __init__(self, config: DigitsModel, side: int) -> None:
        super().__init__()
        self.places = PictureEncoder(config.channels, side)
        size = self.places.side**2 * config.channels[-1]
        self.answer = nn.Sequential(nn.Linear(size, config.hidden), nn.ReLU(), nn.Linear(config.hidden, CLASSES))

    def forward(self, pictures: Tensor) -> DigitsOutput:
        return DigitsOutput(self.answer(self.places(pictures).flatten(1)), None, None)


class PlainClassifier(nn.Module):
    """The article's own network: pixels, two hidden layers, ten classes."""

    def __init__(self, config: DigitsModel, side: int) -> None:
        super().__init__()
        sizes = (side * side, *config.plain)
        hidden = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair), nn.ReLU())]
        self.layers = nn.Sequential(nn.Flatten(), *hidden, nn.Linear(sizes[-1], CLASSES))

    def forward(self, pictures: Tensor) -> DigitsOutput:
        return DigitsOutput(self.layers(pictures), None, None)


def build_classifier(config: DigitsModel, side: int) -> nn.Module:
    """Return the network of this kind for pictures of this size."""
    kinds = {
        "gated": GatedClassifier,
        "pooling": PoolingClassifier,
        "additive-pooling": PoolingClassifier,
        "convolution": ConvolutionClassifier,
        "plain": PlainClassifier,
    }
    built: nn.Module = kinds[config.kind](config, side)
    return built
