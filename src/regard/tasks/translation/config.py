"""The configuration of a translator: text, vocabularies, model, training and validation."""

from dataclasses import dataclass, field
from typing import Literal

from regard.errors import wrong
from regard.models import ModelConfig
from regard.models.ranges import CheckedConfig, Count, Rate
from regard.tasks.data import TextConfig, VocabularyConfig
from regard.tasks.translation.metrics import Tokenizer
from regard.training import Training

SIDES = ("source", "target")


@dataclass(frozen=True, slots=True)
class TranslationVocabulary(CheckedConfig):
    """How the text of both sides is split into tokens. A joint vocabulary is one for both sides."""

    joint: bool = False  # one vocabulary for both sides
    source: VocabularyConfig = field(default_factory=VocabularyConfig)
    target: VocabularyConfig = field(default_factory=VocabularyConfig)

    def check(self) -> None:
        if self.joint and self.source != self.target:
            got = f"{self.target.kind} of {self.target.size} beside {self.source.kind} of {self.source.size}"
            fix = "set joint=false, or set vocabulary.kind and vocabulary.size, which are those of both sides"
            raise wrong("target", got, "the same as the source if joint=true", fix)


@dataclass(frozen=True, slots=True)
class TranslationTraining(CheckedConfig):
    """The size of a batch, and the targets of the loss."""

    budget: Count = 4096  # tokens in a batch, of the side that has more, padding included
    limit: Count = 200  # tokens of a sentence; pairs with a longer one are left out
    fixed: str = ""  # fields that somebody named, with commas between: they do not follow the number of pairs
    smoothing: Rate = 0.1  # of labels: the share of probability that goes to all tokens alike


@dataclass(frozen=True, slots=True)
class TranslationValidation(CheckedConfig):
    """How held-out text is measured while the model trains."""

    goal: Literal["bleu", "exact", "loss"] = "bleu"  # decides which weights are the best
    tokenizer: Tokenizer = "auto"  # of BLEU: zh for Chinese, else 13a; none for text that is already in tokens
    beam: Count = 1  # hypotheses that are kept at each step; 1 is greedy search
    most: Count = 1000  # pairs of the validation set, from its beginning


@dataclass(frozen=True, slots=True)
class TranslationConfig(CheckedConfig):
    """The configuration of a translator."""

    task: Literal["translation"] = "translation"
    data: TextConfig = field(default_factory=TextConfig)
    vocabulary: TranslationVocabulary = field(default_factory=TranslationVocabulary)
    model: ModelConfig = field(default_factory=ModelConfig)
    learning: TranslationTraining = field(default_factory=TranslationTraining)
    measure: TranslationValidation = field(default_factory=TranslationValidation)
    training: Training = field(default_factory=Training)

    def check(self) -> None:
        if self.model.tied == "all" and not self.vocabulary.joint:
            fix = "set vocabulary.joint=true, or model.tied=output"
            raise wrong("model.tied", "all", "a joint vocabulary if both sides share their words", fix)
