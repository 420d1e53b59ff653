"""Images and questions by name: what a command line or a configuration says."""

from regard.tasks.images.scene_language import LANGUAGES
from regard.tasks.vqa.config import VqaData
from regard.tasks.vqa.questions import VqaDataset, read_questions
from regard.tasks.vqa.scenes import draw_dataset


def open_questions(config: VqaData) -> VqaDataset:
    """Return the images and questions that a configuration names."""
    return draw_dataset(config) if config.questions in LANGUAGES else read_questions(config)
