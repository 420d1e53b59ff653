"""Visual question answering: a question attends to the regions of an image, and selects one of the known answers."""

from dataclasses import replace
from pathlib import Path
from typing import cast

from regard.tasks.definition import TaskDefinition
from regard.tasks.prediction import load_model
from regard.tasks.vqa.config import PRESETS, VqaConfig
from regard.tasks.vqa.model import Answerer
from regard.tasks.vqa.predictor import VqaPredictor
from regard.tasks.vqa.questions import VqaDataset
from regard.tasks.vqa.source import open_questions
from regard.tasks.vqa.task import VqaTask, build_answerer, load_vocabulary_and_answers, start_task

FEW = 1000  # images: of fewer a model remembers where everything was
JITTER = 0.08


class VqaDefinition(TaskDefinition[VqaConfig]):
    """Answer questions about images."""

    presets = PRESETS
    data_help = """QUESTIONS is easy-vqa (in its package), scenes or scenes-zh (drawn here, asked about in English
or Chinese), or a folder with images and questions.json, a list of [question, answer, image], an image by its name or by
a number n for n.png; or folders train and test with these."""
    data_field = data_noun = "questions"
    run_name = "vqa-{data}-{preset}"
    goal = VqaTask.goal

    def open_data(self, config: VqaConfig) -> VqaDataset:
        dataset = open_questions(config.data)
        dataset.check_lengths(config.data.limit)
        return dataset

    def adapt_config(self, config: VqaConfig, data: VqaDataset) -> VqaConfig:
        if config.learning.jitter is not None:
            return config
        amount = JITTER if len(data.training.names) < FEW else 0.0
        return replace(config, learning=replace(config.learning, jitter=amount))

    def assemble_task(self, config: VqaConfig, data: VqaDataset, run: Path | None) -> VqaTask:
        return start_task(config, data) if run is None else VqaTask(config, data, *load_vocabulary_and_answers(run))

    def load(self, config: VqaConfig, run: Path, weights: Path | None = None) -> VqaPredictor:
        vocabulary, answers = load_vocabulary_and_answers(run)
        model = load_model(lambda: build_answerer(config, len(vocabulary), len(answers)), config.training, run, weights)
        return VqaPredictor(config, vocabulary, answers, cast(Answerer, model))


__all__ = ["VqaConfig", "VqaDefinition", "VqaPredictor", "VqaTask"]
