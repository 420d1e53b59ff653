"""Images and questions about them: easy-VQA, which comes with its package, or a folder laid out like it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.datasets.bounds import get_bound, parse_json
from regard.datasets.plain_files import read_text
from regard.errors import import_package, wrong
from regard.tasks.data.fingerprints import digest
from regard.tasks.data.held_out import assign_parts
from regard.tasks.data.words import normalize_words
from regard.tasks.images import ImageFiles, decode_images
from regard.tasks.vqa.config import VqaData

YES_NO = ("yes", "no", "有", "没有", "是", "不是", "对", "不对")
MOST_HELD_OUT = 400  # images for validation
LEAST = 3  # images of a folder without splits
HELD_OUT = ("validation", "test")
QUESTIONS = "questions.json"
EXPECTED = "a list of [question, answer, image]"


class ImageQuestion(NamedTuple):
    """A question about an image, by the index of the image, and its answer."""

    text: str
    answer: str
    image: int


@dataclass(frozen=True)
class VqaSplit:
    """Images, and questions about each."""

    pixels: np.ndarray  # (image, height, width, 3), bytes
    names: Sequence[str]
    questions: Sequence[ImageQuestion]

    @cached_property
    def questions_by_image(self) -> list[list[int]]:
        """The numbers of the questions about each image."""
        found: list[list[int]] = [[] for _ in self.names]
        for number, question in enumerate(self.questions):
            found[question.image].append(number)
        return found

    def select_images(self, chosen: Sequence[int]) -> "VqaSplit":
        """Return some of the images, with their questions."""
        places = {image: place for place, image in enumerate(chosen)}
        questions = [one._replace(image=places[one.image]) for one in self.questions if one.image in places]
        return VqaSplit(self.pixels[list(chosen)], [self.names[image] for image in chosen], questions)


class VqaDataset(NamedTuple):
    """Images to train on, and held-out images."""

    training: VqaSplit
    validation: VqaSplit
    test: VqaSplit

    @property
    def fingerprint(self) -> str:
        """A hash of the questions: with another one, a resumed run would not go on as it began."""
        asked = ((split.names[question.image], question) for split in self[:2] for question in split.questions)
        return digest(f"{name}\t{question.text}\t{question.answer}\n".encode() for name, question in asked)

    def check_lengths(self, limit: int) -> None:
        """Raise if a question is longer than any that may be asked."""
        longest = max(len(question.text.split()) for split in self for question in split.questions)
        if longest > limit:
            raise wrong("data.limit", limit, f"at least {longest}, the longest question", f"set data.limit={longest}")


def read_questions(config: VqaData) -> VqaDataset:
    """Return the images and questions of easy-VQA or of a folder."""
    folder = find_package_folder() if config.questions == "easy-vqa" else Path(config.questions)
    if not folder.is_dir():
        fix = "write easy-vqa, scenes, scenes-zh, or the path of a folder"
        raise wrong("data.questions", f"no folder {folder}", "easy-vqa, or a folder with train and test", fix)
    if has_no_splits(folder):
        return split_folder(read_split(folder, config), config)
    if not (folder / "train").is_dir():
        fix = f"put {QUESTIONS}, {EXPECTED}, beside the folder images"
        raise wrong("data.questions", f"no {QUESTIONS} in {folder}", "it there, or in folders train and test", fix)
    known, test = (read_split(folder / name, config) for name in ("train", "test"))
    held_out = max(1, min(MOST_HELD_OUT, len(known.names) // 10)) if config.held_out is None else config.held_out
    kept = len(known.names) - held_out
    if kept < 1:
        got, fix = f"{held_out} of {len(known.names)} images", "set data.held_out to a tenth of them"
        raise wrong("data.held_out", got, "fewer than there are", fix)
    most = kept if config.most is None else min(kept, config.most)
    return VqaDataset(known.select_images(range(most)), known.select_images(range(kept, len(known.names))), test)


def has_no_splits(folder: Path) -> bool:
    """Return whether a folder has images and questions, and nothing that says what is for tests."""
    return not (folder / "train").is_dir() and (folder / QUESTIONS).is_file()


def split_folder(found: VqaSplit, config: VqaData) -> VqaDataset:
    """Return the images of a folder without splits, by a hash of their names: a tenth each is held out."""
    if len(found.names) < LEAST:
        raise wrong("images", len(found.names), f"at least {LEAST}, to learn, validate and test", "add some")
    parts = list(assign_parts(found.names).values())
    chosen = {part: [place for place, own in enumerate(parts) if own == part] for part in ("train", *HELD_OUT)}
    chosen["train"] = chosen["train"][: config.most]
    return VqaDataset(*(found.select_images(places) for places in chosen.values()))


def find_package_folder() -> Path:
    """Return the folder of the data in the package."""
    return Path(import_package("easy_vqa", "vision", package="easy-vqa").__file__).parent / "data"


def read_split(folder: Path, config: VqaData) -> VqaSplit:
    """Read one split: a folder of images and questions.json."""
    rows = read_rows(folder / QUESTIONS)
    pictures = ImageFiles(folder / "images")
    names = sorted({image for _, _, image in rows}, key=lambda name: (len(name), name))  # 9.png before 10.png
    missing = [name for name in names if name not in pictures.members]
    if missing:
        fix = "bring the image back, or take its questions out"
        raise wrong("images", f"no {missing[0]} in {pictures.path}", "an image for every question", fix)
    indices = {name: index for index, name in enumerate(names)}
    asked = [ImageQuestion(normalize_words(text, config.words), answer, indices[image]) for text, answer, image in rows]
    return VqaSplit(decode_images(pictures, names, config.pixels, cache=config.cache), names, asked)


def read_rows(file: Path) -> list[tuple[str, str, str]]:
    """Read question, answer and image of each row: the name of its file, or a number, which means 0.png, 1.png, …"""
    try:
        found = parse_json(read_text(file, get_bound("text", "bytes")))
        rows = [(str(text), str(answer), name_image(image)) for text, answer, image in found]
    except FileNotFoundError:
        raise wrong("questions", f"no file {file}", EXPECTED, "put it there") from None
    except (OSError, ValueError, TypeError) as error:
        got = f"{file}, which cannot be read ({type(error).__name__})"
        raise wrong("questions", got, EXPECTED, "correct the file") from None
    if not rows:
        raise wrong("questions", f"none in {file}", EXPECTED, "write some questions")
    return rows


def name_image(image: object) -> str:
    """Return the file of an image by its name or number; raise a `ValueError` for anything else.

    >>> name_image(7), name_image("cat.jpg")
    ('7.png', 'cat.jpg')
    """
    if isinstance(image, str) and not image.isdecimal():
        return image
    if isinstance(image, bool | float) or not str(image).isdecimal():
        raise ValueError(image)
    return f"{image}.png"
