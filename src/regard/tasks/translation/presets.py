"""Translators by name: the models of `regard.models`, each with a way of training it that works on most text."""

from dataclasses import replace
from pathlib import Path

from regard.models import PRESETS, ModelConfig
from regard.tasks.data import TextConfig, VocabularyConfig
from regard.tasks.data.numbers import speaker
from regard.tasks.naming import chosen, in_folder
from regard.tasks.translation.config import Cutting, Learning, Measure, TranslationConfig
from regard.tasks.translation.text import ENDLESS
from regard.training import Every, Optimizer, Schedule, Stop, Training

SOME_NUMBER = 234567
EPOCHS = {"numbers": 20, "dates": 60}  # dates have thousands of names of months to be learned by heart

__all__ = ["PRESETS", "preset"]


def preset(name: str | None = None, text: TextConfig | None = None) -> TranslationConfig:
    """The configuration of this name for this text, to be changed where that is wanted.

    >>> preset("luong", TextConfig("dates")).vocabulary.source.kind
    'word'
    """
    name, text = name or next(iter(PRESETS)), text or TextConfig()
    made = (for_endless if text.text in ENDLESS else for_files)(chosen(PRESETS, name), text)
    return in_folder(made, text.text.partition(",")[0], name)


def for_endless(model: ModelConfig, text: TextConfig) -> TranslationConfig:
    """Clean text without end: nothing to overfit to, so neither dropout nor smoothing."""
    kind = VocabularyConfig(kind="word" if in_words(text) else "character")
    shape = replace(model.recurrent, hidden=min(128, model.recurrent.hidden))
    reading = replace(model.reading, hidden=min(128, model.reading.hidden))
    return TranslationConfig(
        data=text,
        vocabulary=Cutting(source=kind, target=kind, joint=model.tied == "all"),
        model=replace(model, size=min(128, model.size), dropout=0.0, recurrent=shape, reading=reading),
        learning=Learning(budget=2048, smoothing=0.0),
        measure=Measure(goal="exact"),
        training=Training(
            optimizer=Optimizer(rate=2e-3 if model.encoder == "transformer" else 4e-3, decay=0.0),
            schedule=Schedule("cosine", warmup=100),
            stop=Stop(epochs=EPOCHS[text.text], target=99.9),
        ),
    )


def for_files(model: ModelConfig, text: TextConfig) -> TranslationConfig:
    """Text of people: less of it than a model could learn by heart."""
    joint = model.tied == "all"
    kind = VocabularyConfig(kind="bpe")
    rate, warmup = (5e-3, 2000) if model.encoder == "transformer" else (1e-3, 400)
    return TranslationConfig(
        data=text,
        vocabulary=Cutting(source=kind, target=kind, joint=joint),
        model=model,
        measure=Measure(tokenizer="none" if all(map(in_tokens, text.text.split(","))) else "13a"),
        training=Training(
            keep=10,
            optimizer=Optimizer(rate=rate),
            schedule=Schedule("inverse-square-root", warmup=warmup),
            # By steps: an epoch of little text is a few steps, and ten of them without a better metric mean nothing.
            stop=Stop(steps=20_000, patience=10),
            every=Every(log=20, evaluate=200),
        ),
    )


def in_words(text: TextConfig) -> bool:
    """Whether both sides write their parts apart: dates do, numbers not always. German writes 234567 as one word.

    >>> in_words(TextConfig("dates")), in_words(TextConfig()), in_words(TextConfig(source="en", target="de"))
    (True, True, False)
    """
    languages = text.source or "en", text.target or "fr"
    return text.text == "dates" or all(speaker(name)(SOME_NUMBER).count(" ") >= 3 for name in languages)


def in_tokens(name: str) -> bool:
    """Whether a file or folder says that its text is in tokens already, as Multi30k's `tok/` does.

    >>> in_tokens("multi30k/tok"), in_tokens("train.lc.norm.tok.en.gz"), in_tokens("stocks.en")
    (True, True, False)
    """
    return Path(name).name == "tok" or ".tok." in Path(name).name
