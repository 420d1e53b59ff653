"""The configuration of a model that answers questions about images."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from regard.errors import wrong
from regard.models.ranges import Channels, CheckedConfig, Count, Natural, NotNegative, Rate
from regard.tasks.data.words import WordCut
from regard.training import Training, configure_cosine_training
from regard.training.settings import require_steps

Kind = Literal["stacked", "co-attention", "transformer", "none"]


@dataclass(frozen=True, slots=True)
class VqaData(CheckedConfig):
    """Where images and questions come from."""

    questions: str = "easy-vqa"  # of its package; scenes, scenes-zh: drawn here; or a folder laid out as easy-vqa is
    words: WordCut = "character"  # how Chinese is cut: by character, or into words by rjieba; other scripts by word
    pixels: Count = 64  # a side of an image, as the network sees it
    most: Count | None = None  # images to learn from, from the first on; none: all
    held_out: Count | None = None  # images for validation, of those to learn from; none: a tenth, at most 400
    limit: Count = 40  # words of a question; longer ones are refused
    cache: Path | None = None  # a folder for images that were decoded once; none: the user's cache folder
    scenes: Count = 2000  # to learn from, of those drawn here
    seed: Natural = 1  # of those drawn here


@dataclass(frozen=True, slots=True)
class AnswererConfig(CheckedConfig):
    """How a question attends to an image."""

    kind: Kind = "stacked"  # Yang et al. 2016; Lu et al. 2016; cross-attention of words; none: the mean of the image
    score: str | None = None  # a name of the catalog; none: the paper's own
    normalizer: str = "softmax"  # a name of the catalog
    hops: Count = 2  # attention steps of the stacked, layers of the transformer
    heads: Count = 4  # of the transformer
    size: Count = 64  # of words, questions and regions
    channels: Channels = (16, 32, 48, 64)  # of the convolutions; each halves the image
    dropout: Rate = 0.0  # rate of dropout, while training

    def check(self) -> None:
        if self.size % self.heads:
            raise wrong("heads", self.heads, f"a divisor of size={self.size}", "use 4")


@dataclass(frozen=True, slots=True)
class VqaTraining(CheckedConfig):
    """The size of a batch, and the augmentation of its images."""

    images: Count = 16  # with all of their questions
    jitter: NotNegative | None = None  # turns, shifts and stretches, as a share of the image; none: 0.08 for few images


@dataclass(frozen=True, slots=True)
class VqaConfig:
    """The configuration of a model that answers questions about images."""

    task: Literal["vqa"] = "vqa"
    data: VqaData = field(default_factory=VqaData)
    model: AnswererConfig = field(default_factory=AnswererConfig)
    learning: VqaTraining = field(default_factory=VqaTraining)
    training: Training = field(
        default_factory=lambda: require_steps(configure_cosine_training(1e-3, 50, epochs=15, target=99.95, log=20), 800)
    )


PRESETS: Mapping[str, VqaConfig] = {kind: VqaConfig(model=AnswererConfig(kind)) for kind in get_args(Kind)}
