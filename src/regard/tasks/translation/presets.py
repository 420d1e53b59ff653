"""Presets of translators: the models of `regard.models`, each with a way of training it that works on most text."""

from dataclasses import replace
from pathlib import Path

from regard.models import PRESETS, ModelConfig
from regard.tasks.data import TextConfig, VocabularyConfig
from regard.tasks.data.numbers import get_number_formatter
from regard.tasks.data.phrases import PHRASES
from regard.tasks.translation.config import (
    TranslationConfig,
    TranslationTraining,
    TranslationValidation,
    TranslationVocabulary,
)
from regard.tasks.translation.text import ENDLESS
from regard.training import Intervals, Optimizer, Schedule, StopCriteria, Training, configure_cosine_training

SOME_NUMBER = 234567
EPOCHS = {"numbers": 20, PHRASES: 10, "dates": 60}  # dates have thousands of names of months to be learned by heart

__all__ = ["PRESETS", "build_preset"]


def build_preset(name: str | None = None, text: TextConfig | None = None) -> TranslationConfig:
    """Return the configuration of a preset for this text.

    >>> build_preset("luong", TextConfig("dates")).vocabulary.source.kind
    'word'
    """
    name, text = name or next(iter(PRESETS)), text or TextConfig()
    return (configure_for_generated if text.text in ENDLESS else configure_for_files)(PRESETS[name], text)


def configure_for_generated(model: ModelConfig, text: TextConfig) -> TranslationConfig:
    """Return a configuration for generated text: nothing to overfit to, so neither dropout nor smoothing."""
    kind = VocabularyConfig(kind="word" if has_spaced_words(text) else "character")
    shape = replace(model.recurrent, hidden=min(128, model.recurrent.hidden))
    attention = replace(model.attention, hidden=min(128, model.attention.hidden))
    return TranslationConfig(
        data=text,
        vocabulary=TranslationVocabulary(source=kind, target=kind, joint=model.tied == "all"),
        model=replace(model, size=min(128, model.size), dropout=0.0, recurrent=shape, attention=attention),
        learning=TranslationTraining(budget=2048, smoothing=0.0),
        measure=TranslationValidation(goal="exact"),
        training=configure_cosine_training(
            2e-3 if model.encoder == "transformer" else 4e-3, 100, epochs=EPOCHS[text.text], target=99.9
        ),
    )


def configure_for_files(model: ModelConfig, text: TextConfig) -> TranslationConfig:
    """Return a configuration for text of people: less than a model could learn by heart."""
    kind = VocabularyConfig(kind="bpe")
    rate, warmup = (5e-3, 2000) if model.encoder == "transformer" else (1e-3, 400)
    return TranslationConfig(
        data=text,
        vocabulary=TranslationVocabulary(source=kind, target=kind, joint=model.tied == "all"),
        model=model,
        measure=TranslationValidation(tokenizer="none" if all(map(is_tokenized, text.text.split(","))) else "auto"),
        training=Training(
            keep=10,
            optimizer=Optimizer(rate=rate),
            schedule=Schedule("inverse-square-root", warmup=warmup),
            # By steps: an epoch of little text is a few steps, and ten of them without a better metric mean nothing.
            stop=StopCriteria(steps=20_000, epochs=200, least=2000, patience=10),
            every=Intervals(log=20, evaluate=200),
        ),
    )


def has_spaced_words(text: TextConfig) -> bool:
    """Return whether words are parts of a sentence on both sides: those of dates are, but German writes 234567 as one.

    >>> (
    ...     has_spaced_words(TextConfig("dates")),
    ...     has_spaced_words(TextConfig()),
    ...     has_spaced_words(TextConfig(source="en", target="de")),
    ... )
    (True, True, False)
    """
    languages = text.source or "en", text.target or "fr"
    return text.text in ("dates", PHRASES) or all(
        get_number_formatter(name)(SOME_NUMBER).count(" ") >= 3 for name in languages
    )


def is_tokenized(name: str) -> bool:
    """Return whether the name of a file or folder says that its text is tokenized, as Multi30k's `tok/` does.

    >>> is_tokenized("multi30k/tok"), is_tokenized("train.lc.norm.tok.en.gz"), is_tokenized("stocks.en")
    (True, True, False)
    """
    return Path(name).name == "tok" or ".tok." in Path(name).name
