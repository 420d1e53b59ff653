"""The configuration of a speech recognizer: sounds, features, encoder (listener), decoder (speller), training."""

from dataclasses import dataclass, field
from typing import Literal

from regard.models.config import AttentionConfig
from regard.models.ranges import CheckedConfig, Count, Rate
from regard.tasks.data import VocabularyConfig
from regard.tasks.speech.features import SpectrogramConfig
from regard.tasks.speech.sound_source import SoundConfig
from regard.training import Training


@dataclass(frozen=True, slots=True)
class Listener(CheckedConfig):
    """The pyramidal encoder (Chan et al. 2016)."""

    cell: Literal["gru", "lstm"] = "lstm"
    hidden: Count = 64  # numbers in a state, in each direction
    layers: Count = 3  # each but the first has half the positions of the one below
    stack: Count = 2  # frames that the first reads at once
    dropout: Rate = 0.0  # rate of dropout, while training


@dataclass(frozen=True, slots=True)
class Speller(CheckedConfig):
    """The decoder. How it attends: `attention.location` (Chorowski et al. 2015), `attention.normalizer` (monotonic)."""

    decoder: Literal["bahdanau", "luong", "plain"] = "bahdanau"  # plain: without attention
    cell: Literal["gru", "lstm"] = "lstm"
    size: Count = 32  # of the vectors of symbols
    hidden: Count = 128  # numbers in a state
    layers: Count = 1  # of cells
    dropout: Rate = 0.0  # rate of dropout, while training
    attention: AttentionConfig = field(default_factory=lambda: AttentionConfig(hidden=64, location=True))


@dataclass(frozen=True, slots=True)
class SpeechTraining(CheckedConfig):
    """The size of a batch, and the targets of the loss."""

    budget: Count = 6000  # frames in a batch, padding included
    limit: Count = 3000  # frames of a clip; longer ones are not learned from, and errors where they are held out
    smoothing: Rate = 0.0  # of labels: the share of probability that goes to all symbols alike


@dataclass(frozen=True, slots=True)
class SpeechValidation(CheckedConfig):
    """How held-out clips are measured while the model trains."""

    goal: Literal["error", "loss"] = "error"  # decides which weights are the best
    beam: Count = 1  # hypotheses that are kept at each step; 1 is greedy search
    most: Count = 300  # clips of the validation set, from its beginning


@dataclass(frozen=True, slots=True)
class SpeechConfig:
    """The configuration of a speech recognizer."""

    task: Literal["speech"] = "speech"
    data: SoundConfig = field(default_factory=SoundConfig)
    features: SpectrogramConfig = field(default_factory=SpectrogramConfig)
    vocabulary: VocabularyConfig = field(default_factory=lambda: VocabularyConfig(kind="character", size=1000))
    listener: Listener = field(default_factory=Listener)
    speller: Speller = field(default_factory=Speller)
    learning: SpeechTraining = field(default_factory=SpeechTraining)
    measure: SpeechValidation = field(default_factory=SpeechValidation)
    training: Training = field(default_factory=Training)
