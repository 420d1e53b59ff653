"""Presets of readers, each with a way of training that works."""

from dataclasses import replace

from regard.tasks.reading.config import ReadingConfig, ReadingData, ReadingTraining, SpanReaderConfig
from regard.training import configure_cosine_training
from regard.training.settings import require_steps

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
        training=configure_cosine_training(5e-3, 50, epochs=10, target=99.5),
    )


def configure_for_squad(reader: SpanReaderConfig, data: ReadingData) -> ReadingConfig:
    """Return a configuration for questions of people: fewer than a model could learn by heart."""
    return ReadingConfig(
        data=data,
        reader=replace(reader, hidden=64, dropout=0.25),
        learning=ReadingTraining(budget=5000),
        training=require_steps(configure_cosine_training(2e-3, 200, epochs=10, decay=0.01, log=20), 600),
    )
