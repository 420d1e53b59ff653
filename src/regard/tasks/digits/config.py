"""The configuration of a classifier of digits."""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from regard.errors import wrong
from regard.models.ranges import Channels, CheckedConfig, Count, Natural, NotNegative
from regard.training import Training, configure_cosine_training
from regard.training.settings import require_steps

Kind = Literal["gated", "pooling", "additive-pooling", "convolution", "plain"]


@dataclass(frozen=True, slots=True)
class DigitsData(CheckedConfig):
    """Where the pictures come from."""

    source: str = "digits"  # digits (of scikit-learn), or a folder of idx files, or of folders 0 to 9 of images
    seed: Natural = 1  # of which pictures are held out
    validation: Count | None = None  # pictures to choose the best weights by; none: a tenth, at most 5000
    training: Natural = 0  # pictures to learn from, at most; 0: all
    canvas: Natural = 0  # side of a canvas on which each picture lies somewhere, anew in each epoch; 0: none
    clutter: Natural = 0  # pieces of other pictures on a canvas


@dataclass(frozen=True, slots=True)
class DigitsModel(CheckedConfig):
    """How a picture is attended to. A small convolution makes a key of each region; convolution: a hidden
    layer over all of them, without attention; the plain net has neither."""

    kind: Kind = "gated"
    score: str = "own"  # a name of the catalog; own: that of the kind, additive or the dot product
    channels: Channels = (8, 16, 24)  # of the convolutions; a region has the last of them
    heads: Count = 2  # of gated attention, or learned queries of pooling
    hidden: Count = 32  # of the gated heads, of additive pooling, and behind pooling
    steps: Count = 3  # glimpses
    gate: bool = True  # of gated attention: false lets all of each glimpse in
    memory: bool = True  # of gated attention: false forgets a glimpse when the next is taken
    plain: tuple[int, ...] = (128, 64)  # of the plain net

    def check(self) -> None:
        if min(self.plain, default=1) < 1:
            raise wrong("plain", self.plain, "numbers above 0", "use 128,64")


@dataclass(frozen=True, slots=True)
class DigitsTraining(CheckedConfig):
    """The size of a batch, and the augmentation of its pictures."""

    batch: Count = 64  # pictures in a batch
    jitter: NotNegative = 0.08  # turns, shifts and stretches, as a share of the picture; 0: none


@dataclass(frozen=True, slots=True)
class DigitsConfig:
    """The configuration of a classifier of digits."""

    task: Literal["digits"] = "digits"
    data: DigitsData = field(default_factory=DigitsData)
    model: DigitsModel = field(default_factory=DigitsModel)
    learning: DigitsTraining = field(default_factory=DigitsTraining)
    training: Training = field(
        default_factory=lambda: configure_cosine_training(3e-3, 50, epochs=60, decay=0.01, keep=1, log=20)
    )


KINDS: tuple[Kind, ...] = get_args(Kind)
# Channels, heads and hidden units with which a kind has about as many parameters as the plain net for its pictures.
SMALL = {
    "gated": ((8, 16, 24), 2, 32),
    "pooling": ((12, 24, 32), 4, 48),
    "additive-pooling": ((12, 24, 32), 4, 38),
    "convolution": ((8, 16, 24), 2, 30),
}
LARGE = {
    "gated": ((16, 32, 48), 4, 64),
    "pooling": ((16, 48, 96), 4, 128),
    "additive-pooling": ((16, 48, 96), 4, 112),
    "convolution": ((16, 32, 48), 4, 38),
}


def resize_model(model: DigitsModel, sizes: dict[str, tuple[tuple[int, int, int], int, int]]) -> DigitsModel:
    """Return a model of the same kind with these sizes; the plain net has its own."""
    if model.kind not in sizes:
        return model
    channels, heads, hidden = sizes[model.kind]
    return replace(model, channels=channels, heads=heads, hidden=hidden)


PRESETS: dict[str, DigitsConfig] = {
    kind: DigitsConfig(model=resize_model(DigitsModel(kind=kind), SMALL)) for kind in KINDS
}


def configure_for_files(config: DigitsConfig) -> DigitsConfig:
    """Return a configuration for larger pictures and many more of them: a larger model and fewer epochs."""
    return replace(
        config,
        model=resize_model(config.model, LARGE),
        learning=DigitsTraining(batch=128, jitter=0.08),
        training=require_steps(configure_cosine_training(2e-3, 200, epochs=8, decay=0.01, keep=1, log=50), 600),
    )
