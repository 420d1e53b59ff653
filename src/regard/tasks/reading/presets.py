"""Presets of readers, each with a way of training that works."""

from dataclasses import replace

from regard.tasks.reading.config import ReadingConfig, ReadingData, ReadingTraining, SpanReaderConfig
from regard.training import Intervals, Optimizer, Schedule, StopCriteria, Training

READERS: dict[str, SpanReaderConfig] = {
    "bidaf": SpanReaderConfig(),
    "no-attention": SpanReaderConfig(attention="none"),
}


def configure_for_facts(reader: SpanReaderConfig, data: ReadingData) -> ReadingConfig:
    """Return a configuration for generated facts: nothing to overfit to."""
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
    """Return a configuration for questions of people: fewer than a model could learn by heart."""
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
