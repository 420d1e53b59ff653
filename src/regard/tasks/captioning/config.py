"""The configuration of a captioner: images, vocabulary, model, training and validation."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from regard.errors import wrong
from regard.models.config import AttentionConfig, ModelConfig, RecurrentConfig
from regard.models.ranges import Channels, CheckedConfig, Count, Natural, NotNegative, Positive, Rate
from regard.tasks.data import VocabularyConfig
from regard.tasks.data.words import WordCut
from regard.training import Training, configure_cosine_training
from regard.training.settings import require_steps

AttentionKind = Literal["soft", "reinforce", "gumbel", "gumbel-straight", "straight-through", "none"]


@dataclass(frozen=True, slots=True)
class CaptioningData(CheckedConfig):
    """Where images and their captions come from."""

    images: str = "scenes"  # scenes, scenes-zh: drawn here, without end; or a folder with captions.tsv and images
    words: WordCut = "character"  # how Chinese is cut: by character, or into words by rjieba; other scripts by word
    pixels: Count = 128  # a side of a photograph, as the network sees it: a multiple of 32
    cache: Path | None = None  # a folder for features that were computed once; none: the user's cache folder
    scenes: Count = 4000  # in an epoch
    held_out: Count = 500  # scenes for validation, and as many for the test
    seed: Natural = 1  # of what is generated, or of what is held out


@dataclass(frozen=True, slots=True)
class CaptionerConfig(CheckedConfig):
    """An image encoder, and the decoder of Show, Attend and Tell."""

    attention: AttentionKind = (
        "soft"  # soft, or how hard attention is trained; none: the same decoder without attention
    )
    score: str = "additive"  # a name of the catalog
    normalizer: str = "softmax"  # a name of the catalog
    gated: bool = True  # Xu's β: a gate on the context vector
    temperature: Positive = 1.0  # of gumbel and gumbel-straight
    size: Count = 128  # of word vectors
    hidden: Count = 128  # of the cells, and of the projections of queries and keys
    cell: Literal["gru", "lstm"] = "lstm"
    width: Count = 128  # of a region
    channels: Channels = (16, 32, 64)  # of the convolutions that look at scenes; each halves the image
    dropout: Rate = 0.0  # rate of dropout, while training

    @property
    def decoder(self) -> ModelConfig:
        """The same for the decoders of `regard.models`."""
        return ModelConfig(
            decoder="bahdanau",
            size=self.size,
            dropout=self.dropout,
            recurrent=RecurrentConfig(self.cell, self.hidden, bidirectional=False),
            attention=AttentionConfig(self.score, self.normalizer, self.hidden),
        )


@dataclass(frozen=True, slots=True)
class CaptioningTraining(CheckedConfig):
    """The size of a batch, and the terms of the loss."""

    budget: Count = 512  # words in a batch, padding included
    limit: Count = 40  # words of a caption; longer ones are left out
    smoothing: Rate = 0.0  # of labels
    stochastic: NotNegative = 0.01  # Xu's λ: regions get weights of about 1 in sum; theirs is 1, for 196 regions
    bonus: NotNegative = 0.01  # for entropy, if attention is trained by REINFORCE


@dataclass(frozen=True, slots=True)
class CaptioningEvaluation(CheckedConfig):
    """How held-out images are measured while the model trains."""

    goal: Literal["bleu", "exact", "loss"] = "exact"  # decides which weights are the best
    beam: Count = 1  # hypotheses that are kept at each step; 1 is greedy search
    length: NotNegative = 1.0  # length penalty of the beam: 0 is the log-probability, 1 its mean over the words
    most: Count = 500  # images of the validation set, from its beginning


@dataclass(frozen=True, slots=True)
class CaptioningConfig(CheckedConfig):
    """The configuration of a captioner."""

    task: Literal["captioning"] = "captioning"
    data: CaptioningData = field(default_factory=CaptioningData)
    vocabulary: VocabularyConfig = field(default_factory=lambda: VocabularyConfig("blank", 10_000, lowercase=True))
    model: CaptionerConfig = field(default_factory=CaptionerConfig)
    learning: CaptioningTraining = field(default_factory=CaptioningTraining)
    measure: CaptioningEvaluation = field(default_factory=CaptioningEvaluation)
    training: Training = field(default_factory=Training)

    def check(self) -> None:
        if self.vocabulary.kind not in ("word", "blank"):
            fix = "set vocabulary.kind=blank"
            raise wrong("vocabulary.kind", self.vocabulary.kind, "blank or word: a region is shown for each word", fix)


def configure_for_scenes() -> CaptioningConfig:
    """Return a configuration for generated scenes, which takes a minute or two on two cores."""
    return CaptioningConfig(training=configure_cosine_training(3e-3, 50, epochs=12, target=99.0))


def configure_for_photos() -> CaptioningConfig:
    """Return a configuration for photographs with captions that people wrote."""
    return CaptioningConfig(
        vocabulary=VocabularyConfig("blank", 10_000, minimum=None, lowercase=True),
        model=CaptionerConfig(size=256, hidden=256, width=256, dropout=0.35),
        learning=CaptioningTraining(budget=1024, limit=40, smoothing=0.1, stochastic=0.05),
        # A length of 0.7 was the best on Flickr8k's validation set.
        measure=CaptioningEvaluation(goal="bleu", beam=1, length=0.7, most=300),
        training=require_steps(configure_cosine_training(2e-3, 200, epochs=6, decay=0.05, keep=5, log=20), 400),
    )
