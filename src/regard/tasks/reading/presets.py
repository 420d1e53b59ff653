"""Readers by name, each with a way of training that works."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.tasks.naming import changed, chosen, in_folder, of_data
from regard.tasks.reading.config import FACTS, Learning, QuestionConfig, Reader, ReadingConfig
from regard.training import Every, Optimizer, Schedule, Stop, Training

READERS: dict[str, Reader] = {
    "bidaf": Reader(),
    "no-attention": Reader(attention="none"),
}
DATA = """QUESTIONS is facts (generated, endless), a file in the format of SQuAD 1.1, which is cut by article,
or a folder with train-….json and dev-….json; plain or gzip. --vectors names a file of GloVe."""


def configured(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> ReadingConfig:
    """The preset for these questions, with other values for some fields.

    >>> configured("no-attention", (), {}).reader.attention
    'none'
    """
    name = preset or next(iter(READERS))
    source, values = of_data(ReadingConfig(), "data.questions", data, values)
    made = (for_facts if source == FACTS else for_people)(chosen(READERS, name), QuestionConfig(source))
    return changed(in_folder(made, source, name), values)


def for_facts(reader: Reader, data: QuestionConfig) -> ReadingConfig:
    """Clean text without end: nothing to overfit to."""
    return ReadingConfig(
        data=data,
        reader=replace(reader, width=32, hidden=32),
        learning=Learning(budget=2000),
        training=Training(
            optimizer=Optimizer(rate=5e-3, decay=0.0),
            schedule=Schedule("cosine", warmup=50),
            stop=Stop(epochs=10, target=99.5),
        ),
    )


def for_people(reader: Reader, data: QuestionConfig) -> ReadingConfig:
    """Questions of people: fewer than a model could learn by heart."""
    return ReadingConfig(
        data=data,
        reader=replace(reader, hidden=64, dropout=0.25),
        learning=Learning(budget=5000),
        training=Training(
            optimizer=Optimizer(rate=2e-3),
            schedule=Schedule("cosine", warmup=200),
            stop=Stop(epochs=10),
            every=Every(log=20),
        ),
    )
