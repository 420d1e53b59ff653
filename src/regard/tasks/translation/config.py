"""What a translator is told: the text, its vocabularies, the model, and how it learns and is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from regard.errors import wrong
from regard.models import ModelConfig
from regard.models.config import check_positive, check_rate
from regard.tasks import configuration
from regard.tasks.data import TextConfig, VocabularyConfig
from regard.tasks.translation.metrics import Tokenizer
from regard.training import Training, configure
from regard.training.config import walk_fields

SIDES = ("source", "target")


@dataclass(frozen=True, slots=True)
class TranslationVocabulary:
    """How the text of both sides is cut into tokens. A joint vocabulary is one for both, cut in one way."""

    joint: bool = False
    source: VocabularyConfig = field(default_factory=VocabularyConfig)
    target: VocabularyConfig = field(default_factory=VocabularyConfig)

    def __post_init__(self) -> None:
        if self.joint and self.source != self.target:
            got = f"{self.target.kind} of {self.target.size} beside {self.source.kind} of {self.source.size}"
            fix = "set joint=false, or set vocabulary.kind and vocabulary.size, which are those of both sides"
            raise wrong("target", got, "the same as the source where joint=true", fix)


@dataclass(frozen=True, slots=True)
class TranslationTraining:
    """What one batch is, and what is asked of the model."""

    budget: int = 4096  # tokens in a batch, of the side that has more, padding included
    limit: int = 200  # tokens of a sentence; pairs with a longer one are left out
    smoothing: float = 0.1  # of labels: the share of probability that goes to all tokens alike

    def __post_init__(self) -> None:
        for name in ("budget", "limit"):
            check_positive(name, getattr(self, name))
        check_rate("smoothing", self.smoothing)


@dataclass(frozen=True, slots=True)
class TranslationValidation:
    """How good it is, on held-out text, while it trains."""

    goal: Literal["bleu", "exact", "loss"] = "bleu"  # decides which weights are the best
    tokenizer: Tokenizer = "13a"  # of BLEU; none for text that is already in tokens, zh for Chinese
    beam: int = 1
    most: int = 1000  # pairs of the validation set, from its beginning

    def __post_init__(self) -> None:
        for name in ("beam", "most"):
            check_positive(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class TranslationConfig:
    """A translator, whole."""

    task: Literal["translation"] = "translation"
    data: TextConfig = field(default_factory=TextConfig)
    vocabulary: TranslationVocabulary = field(default_factory=TranslationVocabulary)
    model: ModelConfig = field(default_factory=ModelConfig)
    learning: TranslationTraining = field(default_factory=TranslationTraining)
    measure: TranslationValidation = field(default_factory=TranslationValidation)
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        if self.model.tied == "all" and not self.vocabulary.joint:
            fix = "set vocabulary.joint=true, or model.tied=output"
            raise wrong("model.tied", "all", "a joint vocabulary where both sides share their words", fix)


def apply_changes(base: TranslationConfig, values: Mapping[str, Any]) -> TranslationConfig:
    """`base` with other values for some fields. The end of a name will do: the field nearest the top is meant.

    >>> apply_changes(TranslationConfig(), {"seed": "3"}).training.seed
    3
    >>> apply_changes(TranslationConfig(), {"vocabulary.kind": "word"}).vocabulary.target.kind
    'word'
    """
    return configure(base, None, resolve_values(base, values))


def configure_text(values: Mapping[str, Any]) -> TextConfig:
    """The text that such values name: on it depends what is good for the rest."""
    base = TranslationConfig()
    named = {name: value for name, value in resolve_values(base, values).items() if name.startswith("data.")}
    return configure(base, None, named).data


def resolve_values(base: TranslationConfig, values: Mapping[str, Any]) -> dict[str, Any]:
    known = [name for name, _ in walk_fields(base)]
    return {full: value for name, value in values.items() for full in resolve_field(name, known)}


def resolve_field(name: str, known: list[str]) -> list[str]:
    """The fields that a name stands for; of one vocabulary where none is named, those of both."""
    both = {f"vocabulary.{entry.name}" for entry in fields(VocabularyConfig)}
    if name in both:
        return [name.replace("vocabulary.", f"vocabulary.{side}.") for side in SIDES]
    return configuration.resolve_field(name, known)
