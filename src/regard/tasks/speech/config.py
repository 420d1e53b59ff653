"""The configuration of a speech recognizer: sounds, features, encoder (listener), decoder (speller), training."""

from dataclasses import dataclass, field
from typing import Literal

from regard.models.config import AttentionConfig, check_positive, check_rate
from regard.tasks.data import VocabularyConfig
from regard.tasks.speech.features import SpectrogramConfig
from regard.tasks.speech.sound_source import SoundConfig
from regard.training import Training


@dataclass(frozen=True, slots=True)
class Listener:
    """The pyramidal encoder (Chan et al. 2016)."""

    cell: Literal["gru", "lstm"] = "lstm"
    hidden: int = 64  # numbers in a state, in each direction
    layers: int = 3  # each but the first has half the positions of the one below
    stack: int = 2  # frames that the first reads at once
    dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("hidden", "layers", "stack"):
            check_positive(name, getattr(self, name))
        check_rate("dropout", self.dropout)


@dataclass(frozen=True, slots=True)
class Speller:
    """The decoder. How it attends: `attention.location` (Chorowski et al. 2015), `attention.normalizer` (monotonic)."""

    decoder: Literal["bahdanau", "luong", "plain"] = "bahdanau"  # plain: without attention
    cell: Literal["gru", "lstm"] = "lstm"
    size: int = 32  # of the vectors of symbols
    hidden: int = 128  # numbers in a state
    layers: int = 1
    dropout: float = 0.0
    attention: AttentionConfig = field(default_factory=lambda: AttentionConfig(hidden=64, location=True))

    def __post_init__(self) -> None:
        for name in ("size", "hidden", "layers"):
            check_positive(name, getattr(self, name))
        check_rate("dropout", self.dropout)


@dataclass(frozen=True, slots=True)
class SpeechTraining:
    """The size of a batch, and the targets of the loss."""

    budget: int = 6000  # frames in a batch, padding included
    limit: int = 3000  # frames of a clip; longer ones are not learned from, and errors where they are held out
    smoothing: float = 0.0  # of labels: the share of probability that goes to all symbols alike

    def __post_init__(self) -> None:
        for name in ("budget", "limit"):
            check_positive(name, getattr(self, name))
        check_rate("smoothing", self.smoothing)


@dataclass(frozen=True, slots=True)
class SpeechValidation:
    """How held-out clips are measured while the model trains."""

    goal: Literal["error", "loss"] = "error"  # decides which weights are the best
    beam: int = 1
    most: int = 300  # clips of the validation set, from its beginning

    def __post_init__(self) -> None:
        for name in ("beam", "most"):
            check_positive(name, getattr(self, name))


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
