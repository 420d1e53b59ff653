"""How a model that answers questions about images is trained and measured."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.datasets.bounds import parse_json
from regard.datasets.plain_files import read_text
from regard.errors import wrong
from regard.tasks.data import Vocabulary, VocabularyConfig
from regard.tasks.data.batches import pad_rows, shuffle_batches
from regard.tasks.data.fingerprints import digest, save_fingerprint
from regard.tasks.data.split_notes import describe_overlaps, describe_sizes
from regard.tasks.data.vocabularies import load_vocabulary
from regard.tasks.data.vocabulary import build_token_vocabulary
from regard.tasks.data.words import describe_repetition
from regard.tasks.images.jitter import jitter
from regard.tasks.vqa.config import VqaConfig
from regard.tasks.vqa.model import Answerer, VqaBatch
from regard.tasks.vqa.questions import YES_NO, VqaDataset, VqaSplit
from regard.training import DataShare, Goal, LazyBatches, Loss

VOCABULARY, QUESTIONS, ANSWERS = "vocabulary", "questions", "answers.json"
UNSEEN = -1  # an answer that is not in the training set: the model is always wrong
BATCH_SIZE = 100  # images that are measured at once


class VqaTask:
    """Learns to answer. See `regard.training.Task` for what each method is."""

    units = "accuracy, yes/no, other: percent of such questions; loss: nats a question"

    goal = Goal("accuracy", "higher")

    def __init__(self, config: VqaConfig, dataset: VqaDataset, vocabulary: Vocabulary, answers: Sequence[str]) -> None:
        self.config, self.dataset, self.vocabulary, self.answers = config, dataset, vocabulary, list(answers)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the data."""
        train, validation, test = self.dataset
        images = f"{len(train.names):,} images with {len(train.questions):,} questions to learn from"
        counts = [len(split.questions) for split in self.dataset]
        sizes = describe_sizes("questions", counts[0], counts[1], {"test": counts[2]})
        held_out = {"validation": hash_images(validation), "test": hash_images(test)}
        repeated = describe_repetition("questions", (word for one in train.questions for word in one.text.split()))
        return (sizes, images, *describe_overlaps("images", hash_images(train), held_out), *repeated)

    def model(self) -> Answerer:
        return build_answerer(self.config, len(self.vocabulary), len(self.answers))

    def epoch(self, number: int, part: DataShare) -> Sequence[VqaBatch]:
        gallery, seed = self.dataset.training, self.config.training.seed
        groups = shuffle_batches(len(gallery.names), self.config.learning.images, seed, number, part)
        return LazyBatches(groups, lambda chosen: self.collate(gallery, chosen))

    def collate(self, split: VqaSplit, chosen: Sequence[int]) -> VqaBatch:
        """Return some images with all of their questions as a batch."""
        owners = [row for row, image in enumerate(chosen) for _ in split.questions_by_image[image]]
        asked = [split.questions[number] for image in chosen for number in split.questions_by_image[image]]
        pixels = torch.from_numpy(split.pixels[list(chosen)]).permute(0, 3, 1, 2).float().div_(255)
        known = {answer: number for number, answer in enumerate(self.answers)}
        answers = torch.tensor([known.get(one.answer, UNSEEN) for one in asked])
        questions, lengths = encode_questions([one.text for one in asked], self.vocabulary)
        return VqaBatch(pixels, questions, lengths, torch.tensor(owners), answers)

    def loss(self, model: Any, batch: VqaBatch) -> Loss:
        moved = batch._replace(images=jitter(batch.images, self.config.learning.jitter or 0.0, "border"))
        return Loss(sum_cross_entropy(model(moved).scores, batch), int((batch.answers != UNSEEN).sum()))

    def measure(self, model: Any, part: DataShare) -> Mapping[str, float]:
        return self.count_correct(model, self.dataset.validation, part)

    def count_correct(self, model: Any, split: VqaSplit, part: DataShare) -> dict[str, float]:
        """Return how many questions there are and how many are answered right, yes and no apart from the others."""
        sums = dict.fromkeys(("loss", "closed", "closed right", "open", "open right"), 0.0)
        own, device = part.select(range(len(split.names))), next(model.parameters()).device
        closed_ones = [number for number, answer in enumerate(self.answers) if answer in YES_NO]
        for start in range(0, len(own), BATCH_SIZE):
            batch = VqaBatch(*(tensor.to(device) for tensor in self.collate(split, own[start : start + BATCH_SIZE])))
            scores = model(batch).scores
            right = scores.argmax(-1) == batch.answers
            closed = torch.isin(batch.answers, torch.tensor(closed_ones, device=device))
            for name, mine in (("closed", closed), ("open", ~closed)):
                sums[name] += int(mine.sum())
                sums[f"{name} right"] += int((right & mine).sum())
            sums["loss"] += float(sum_cross_entropy(scores, batch))
        return sums

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        asked = total["closed"] + total["open"]
        right = total["closed right"] + total["open right"]
        return {
            "loss": total["loss"] / max(1.0, asked),
            "accuracy": 100 * right / max(1.0, asked),
            "yes/no": 100 * total["closed right"] / max(1.0, total["closed"]),
            "other": 100 * total["open right"] / max(1.0, total["open"]),
        }

    def save(self, folder: Path) -> None:
        (folder / VOCABULARY).mkdir(exist_ok=True)
        self.vocabulary.save(folder / VOCABULARY, QUESTIONS)
        (folder / ANSWERS).write_text(json.dumps(self.answers, ensure_ascii=False), encoding="utf-8")
        save_fingerprint(folder, self.dataset.fingerprint)


def sum_cross_entropy(scores: Tensor, batch: VqaBatch) -> Tensor:
    """Return the negative log-likelihood of the right answers, as far as they are known."""
    known = batch.answers != UNSEEN
    return torch.nn.functional.cross_entropy(scores[known], batch.answers[known], reduction="sum")


def hash_images(split: VqaSplit) -> list[str]:
    """Return a hash of the pixels of each image."""
    return [digest([image.tobytes()]) for image in split.pixels]


def encode_questions(texts: Sequence[str], vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """Return questions as padded token ids, and their lengths."""
    return pad_rows([vocabulary.encode(text) for text in texts])


def build_answerer(config: VqaConfig, words: int, answers: int) -> Answerer:
    """Return a new model for a vocabulary and a number of answers."""
    side = config.data.pixels >> len(config.model.channels)
    if side < 1:
        fix = f"use fewer convolutions, or data.pixels={2 ** len(config.model.channels)}"
        raise wrong("model.channels", f"{len(config.model.channels)} convolutions", "a region to be left", fix)
    return Answerer(config.model, regions=side**2, words=words, answers=answers)


def start_task(config: VqaConfig, dataset: VqaDataset) -> VqaTask:
    """Return the task of a new run, with the words and answers of its training questions."""
    asked = dataset.training.questions
    vocabulary = build_token_vocabulary([question.text for question in asked], VocabularyConfig("blank", 10_000))
    return VqaTask(config, dataset, vocabulary, sorted({question.answer for question in asked}))


def load_vocabulary_and_answers(run: Path) -> tuple[Vocabulary, list[str]]:
    """Read the words and answers of a run."""
    path = run / ANSWERS
    try:
        answers = [str(answer) for answer in parse_json(read_text(path))]
    except (OSError, ValueError, TypeError) as error:
        fix = "check the run folder, or restore the file from a copy"
        raise wrong("answers", f"{path} ({type(error).__name__})", "a list that regard saved", fix) from None
    return load_vocabulary(run / VOCABULARY, QUESTIONS), answers
