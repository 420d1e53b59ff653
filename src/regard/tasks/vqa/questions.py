"""Images and questions about them: easy-VQA, which comes with its package, or a folder laid out like it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.bounds import parse_json
from regard.errors import missing, wrong
from regard.tasks.images import Pictures, decoded
from regard.tasks.vqa.config import Asked

YES_NO = ("yes", "no")
EXPECTED = "a list of [question, answer, image number]"


class Question(NamedTuple):
    """A question about an image, by its place in a list of images, and its answer."""

    text: str
    answer: str
    image: int


@dataclass(frozen=True)
class Gallery:
    """Images, and questions about each."""

    pixels: np.ndarray  # (image, height, width, 3), bytes
    names: Sequence[str]
    questions: Sequence[Question]

    @cached_property
    def by_image(self) -> list[list[int]]:
        """The numbers of the questions about each image."""
        found: list[list[int]] = [[] for _ in self.names]
        for number, question in enumerate(self.questions):
            found[question.image].append(number)
        return found

    def part(self, start: int, stop: int) -> "Gallery":
        """Some images, with their questions."""
        own = [one._replace(image=one.image - start) for one in self.questions if start <= one.image < stop]
        return Gallery(self.pixels[start:stop], self.names[start:stop], own)


class Exhibition(NamedTuple):
    """Images to learn from, and others."""

    training: Gallery
    validation: Gallery
    test: Gallery


def open_questions(config: Asked) -> Exhibition:
    """The images and questions that a configuration names."""
    folder = package_folder() if config.questions == "easy-vqa" else Path(config.questions)
    if not folder.is_dir():
        fix = "write easy-vqa, or the path of a folder"
        raise wrong("data.questions", f"no folder {folder}", "easy-vqa, or a folder with train and test", fix)
    known, test = (gallery(folder / name, config) for name in ("train", "test"))
    kept = len(known.names) - config.held_out
    if kept < 1:
        got, fix = f"{config.held_out} of {len(known.names)} images", "set data.held_out to a tenth of them"
        raise wrong("data.held_out", got, "fewer than there are", fix)
    most = kept if config.most is None else min(kept, config.most)
    return Exhibition(known.part(0, most), known.part(kept, len(known.names)), test)


def package_folder() -> Path:
    """Where the package keeps its data."""
    try:
        import easy_vqa
    except ImportError:
        raise missing("easy-vqa", "vision") from None
    return Path(easy_vqa.__file__).parent / "data"


def gallery(folder: Path, config: Asked) -> Gallery:
    """One part: images/0.png, 1.png, … and questions.json."""
    rows = read_rows(folder / "questions.json")
    pictures = Pictures(folder / "images")
    numbers = sorted({image for _, _, image in rows})
    names = [f"{number}.png" for number in numbers]
    missing = [name for name in names if name not in pictures.members]
    if missing:
        fix = "bring the image back, or take its questions out"
        raise wrong("images", f"no {missing[0]} in {pictures.place}", "an image for every question", fix)
    places = {number: place for place, number in enumerate(numbers)}
    asked = [Question(plain(text), answer, places[image]) for text, answer, image in rows]
    return Gallery(decoded(pictures, names, config.pixels, cache=config.cache), names, asked)


def read_rows(file: Path) -> list[tuple[str, str, int]]:
    """Question, answer and number of the image."""
    try:
        rows = [(str(text), str(answer), int(image)) for text, answer, image in parse_json(file.read_text("utf-8"))]
    except FileNotFoundError:
        raise wrong("questions", f"no file {file}", EXPECTED, "put it there") from None
    except (OSError, ValueError, TypeError) as error:
        got = f"{file}, which cannot be read ({type(error).__name__})"
        raise wrong("questions", got, EXPECTED, "correct the file") from None
    if not rows:
        raise wrong("questions", f"none in {file}", EXPECTED, "write some questions")
    return rows


def plain(question: str) -> str:
    """Lower case, words only.

    >>> plain("What color is the circle?")
    'what color is the circle'
    """
    return " ".join(re.findall(r"[\w'-]+", question.lower()))
