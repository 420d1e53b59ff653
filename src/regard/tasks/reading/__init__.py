"""Reading: attention flow between a passage and a question, from which an answer is pointed at."""

from pathlib import Path
from typing import cast

from regard.tasks.definition import TaskDefinition
from regard.tasks.prediction import load_model
from regard.tasks.reading.config import ReadingConfig, ReadingData
from regard.tasks.reading.fact_language import LANGUAGES
from regard.tasks.reading.lengths import adapt_lengths
from regard.tasks.reading.lexicon import Lexicon
from regard.tasks.reading.model import SpanReader
from regard.tasks.reading.predictor import ReadingPredictor
from regard.tasks.reading.presets import READERS, configure_for_facts, configure_for_squad
from regard.tasks.reading.questions import ReadingDataset
from regard.tasks.reading.task import ReadingTask, build_embedding, open_questions, resume_task, start_task


class ReadingDefinition(TaskDefinition[ReadingConfig]):
    """Find the answer to a question in a passage."""

    presets = READERS
    data_help = """QUESTIONS is facts or facts-zh (generated, endless, in English or Chinese), a file in the format of
SQuAD 1.1, which is cut by article, or a folder with train-….json and dev-….json; plain or gzip. --vectors names a file
of GloVe."""
    data_field = data_noun = "questions"

    def build_preset(self, name: str, data: ReadingData) -> ReadingConfig:
        return (configure_for_facts if data.questions in LANGUAGES else configure_for_squad)(READERS[name], data)

    def open_data(self, config: ReadingConfig) -> ReadingDataset:
        return open_questions(config.data)

    def adapt_config(self, config: ReadingConfig, data: ReadingDataset) -> ReadingConfig:
        return adapt_lengths(config, data)

    def assemble_task(self, config: ReadingConfig, data: ReadingDataset, run: Path | None) -> ReadingTask:
        return start_task(config, data) if run is None else resume_task(config, data, run)

    def load(self, config: ReadingConfig, run: Path, weights: Path | None = None) -> ReadingPredictor:
        lexicon = Lexicon.load(run)
        model = load_model(
            lambda: SpanReader(config.reader, build_embedding(config, lexicon, None)), config.training, run, weights
        )
        return ReadingPredictor(config, lexicon, cast(SpanReader, model), run)


__all__ = ["ReadingConfig", "ReadingDefinition", "ReadingPredictor", "ReadingTask"]
