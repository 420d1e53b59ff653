"""Images and questions by name: those of files, or generated scenes with questions in English or in Chinese."""

import numpy as np

from regard.tasks.data.words import WordCut, normalize_words
from regard.tasks.images.scene_language import LANGUAGES, draw_questions
from regard.tasks.images.scenes import PIXELS, draw_scene
from regard.tasks.vqa.config import VqaData
from regard.tasks.vqa.questions import ImageQuestion, VqaDataset, VqaSplit, read_questions

TRAINING, VALIDATION, TEST = range(3)  # what keeps the seeds of the splits apart
HELD_OUT = 300  # scenes for validation and for the test each


def open_questions(config: VqaData) -> VqaDataset:
    """Return the images and questions that a configuration names."""
    return draw_dataset(config) if config.questions in LANGUAGES else read_questions(config)


def draw_dataset(config: VqaData) -> VqaDataset:
    """Return scenes with questions: those to learn from, and others that are held out."""
    held_out = HELD_OUT if config.held_out is None else config.held_out
    counts = {TRAINING: config.most or config.scenes, VALIDATION: held_out, TEST: held_out}
    return VqaDataset(*(draw_split(config, part, count) for part, count in counts.items()))


def draw_split(config: VqaData, part: int, count: int) -> VqaSplit:
    """Return the scenes of one split, enlarged to the pixels that the network sees."""
    language = LANGUAGES[config.questions]
    pictures, questions = [], []
    for number in range(count):
        seed = [config.seed, part, number]
        scene = draw_scene(seed)
        pictures.append(enlarge(scene.image, config.pixels))
        asked = draw_questions(scene.groups, np.random.default_rng([*seed, 1]), language)
        questions += [build_question(text, answer, number, config.words) for text, answer in asked]
    return VqaSplit(np.stack(pictures), [f"scene {number}" for number in range(count)], questions)


def build_question(text: str, answer: str, image: int, cut: WordCut) -> ImageQuestion:
    """Return a question whose words are looked up as those of a file are."""
    return ImageQuestion(normalize_words(text, cut), answer, image)


def enlarge(image: np.ndarray, pixels: int) -> np.ndarray:
    """Return a square image with `pixels` on a side: each is that of the scene which lies nearest."""
    places = np.arange(pixels) * PIXELS // pixels
    return image[places][:, places]
