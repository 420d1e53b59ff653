"""Readers by name, each with a way of training that works."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regard.tasks.configuration import apply_changes, choose_preset, resolve_data, set_run_folder
from regard.tasks.reading.config import FACTS, ReadingConfig, ReadingData, ReadingTraining, SpanReaderConfig
from regard.training import Intervals, Optimizer, Schedule, StopCriteria, Training

READERS: dict[str, SpanReaderConfig] = {
    "bidaf": SpanReaderConfig(),
    "no-attention": SpanReaderConfig(attention="none"),
}
DATA = """QUESTIONS is facts (generated, endless), a file in the format of SQuAD 1.1, which is cut by article,
or a folder with train-….json and dev-….json; plain or gzip. --vectors names a file of GloVe."""


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> ReadingConfig:
    """The preset for these questions, with other values for some fields.

    >>> configure("no-attention", (), {}).reader.attention
    'none'
    """
    name = preset or next(iter(READERS))
    source, values = resolve_data(ReadingConfig(), "data.questions", data, values)
    made = (configure_for_facts if source == FACTS else configure_for_squad)(
        choose_preset(READERS, name), ReadingData(source)
    )
    return apply_changes(set_run_folder(made, source, name), values)


def configure_for_facts(reader: SpanReaderConfig, data: ReadingData) -> ReadingConfig:
    """Clean text without end: nothing to overfit to."""
    return ReadingConfig(
        data=data,
        reader=replace(reader, width=32, hidden=32),
        learning=ReadingTraining(budget=2000),
        training=Training(
            optimizer=Optimizer(rate=5e-3, decay=0.0),
            schedule=Schedule("cosine", warmup=50),
            stop=StopCriteria(epochs=10, target=99.5),
        ),
    )


def configure_for_squad(reader: SpanReaderConfig, data: ReadingData) -> ReadingConfig:
    """Questions of people: fewer than a model could learn by heart."""
    return ReadingConfig(
        data=data,
        reader=replace(reader, hidden=64, dropout=0.25),
        learning=ReadingTraining(budget=5000),
        training=Training(
            optimizer=Optimizer(rate=2e-3),
            schedule=Schedule("cosine", warmup=200),
            stop=StopCriteria(epochs=10),
            every=Intervals(log=20),
        ),
    )
