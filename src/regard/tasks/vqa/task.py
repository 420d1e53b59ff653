"""Answering questions about images as something that can be trained."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.datasets.bounds import parse_json
from regard.errors import wrong
from regard.tasks.data import Vocabulary, VocabularyConfig, pad
from regard.tasks.data.fingerprints import check_fingerprint, digest, save_fingerprint
from regard.tasks.data.shuffle import shuffle_batches
from regard.tasks.data.split_notes import describe_overlaps, describe_sizes
from regard.tasks.data.vocabularies import load_vocabulary as load_vocabulary
from regard.tasks.data.vocabulary import build_token_vocabulary
from regard.tasks.vqa.config import VqaConfig
from regard.tasks.vqa.model import Answerer, VqaBatch
from regard.tasks.vqa.questions import YES_NO, VqaDataset, VqaSplit, open_questions
from regard.training import DataShare, Goal, LazyBatches, Loss

VOCABULARY, QUESTIONS, ANSWERS = "vocabulary", "questions", "answers.json"
UNSEEN = -1  # an answer that was never learned, and is therefore always wrong
BATCH_SIZE = 100  # images that are measured at once


class VqaTask:
    """Learns to answer. See `regard.training.Task` for what each method is."""

    def __init__(self, config: VqaConfig, dataset: VqaDataset, vocabulary: Vocabulary, answers: Sequence[str]) -> None:
        self.config, self.dataset, self.vocabulary, self.answers = config, dataset, vocabulary, list(answers)

    @property
    def goal(self) -> Goal:
        return get_goal(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the data."""
        known, checked, test = self.dataset
        learned = f"{len(known.names):,} images with {len(known.questions):,} questions to learn from"
        counted = describe_sizes(
            "questions", len(known.questions), len(checked.questions), {"test": len(test.questions)}
        )
        held_out = {"validation": hash_images(checked), "test": hash_images(test)}
        return (counted, learned, *describe_overlaps("images", hash_images(known), held_out))

    def model(self) -> Answerer:
        return build_answerer(self.config, len(self.vocabulary), len(self.answers))

    def epoch(self, number: int, part: DataShare) -> Sequence[VqaBatch]:
        gallery, seed = self.dataset.training, self.config.training.seed
        groups = shuffle_batches(len(gallery.names), self.config.learning.images, seed, number, part)
        return LazyBatches(groups, lambda chosen: self.collate(gallery, chosen))

    def collate(self, split: VqaSplit, chosen: Sequence[int]) -> VqaBatch:
        """Some images with all of their questions."""
        owners = [place for place, image in enumerate(chosen) for _ in split.questions_by_image[image]]
        asked = [split.questions[number] for image in chosen for number in split.questions_by_image[image]]
        pixels = torch.from_numpy(split.pixels[list(chosen)]).permute(0, 3, 1, 2).float().div_(255)
        known = {answer: number for number, answer in enumerate(self.answers)}
        answers = torch.tensor([known.get(one.answer, UNSEEN) for one in asked])
        questions, lengths = encode_questions([one.text for one in asked], self.vocabulary)
        return VqaBatch(pixels, questions, lengths, torch.tensor(owners), answers)

    def loss(self, model: Any, batch: VqaBatch) -> Loss:
        scores = model(batch).scores
        known = batch.answers != UNSEEN
        total = torch.nn.functional.cross_entropy(scores[known], batch.answers[known], reduction="sum")
        return Loss(total, int(known.sum()))

    def measure(self, model: Any, part: DataShare) -> Mapping[str, float]:
        return self.count_correct(model, self.dataset.validation, part)

    def count_correct(self, model: Any, split: VqaSplit, part: DataShare) -> dict[str, float]:
        """How many questions there are and how many are answered rightly, yes and no apart from the others."""
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
            known = batch.answers != UNSEEN
            loss = torch.nn.functional.cross_entropy(scores[known], batch.answers[known], reduction="sum")
            sums["loss"] += float(loss)
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
        save_fingerprint(folder, compute_fingerprint(self.dataset))


def hash_images(split: VqaSplit) -> list[str]:
    """A short name for the pixels of each image."""
    return [digest([image.tobytes()]) for image in split.pixels]


def encode_questions(texts: Sequence[str], vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """Questions in numbers, padded, and their lengths."""
    rows = [vocabulary.encode(text) for text in texts]
    return pad(rows), torch.tensor([len(row) for row in rows])


def build_answerer(config: VqaConfig, words: int, answers: int) -> Answerer:
    """The model for so many words and answers."""
    side = config.data.pixels >> len(config.model.channels)
    if side < 1:
        fix = f"use fewer convolutions, or data.pixels={2 ** len(config.model.channels)}"
        raise wrong("model.channels", f"{len(config.model.channels)} convolutions", "a region to be left", fix)
    return Answerer(config.model, regions=side**2, words=words, answers=answers)


def build_task(config: VqaConfig, run: Path | None = None) -> VqaTask:
    """The task of a new run, or of one that has its words and answers in a folder."""
    exhibition = open_questions(config.data)
    check_lengths(exhibition, config.data.limit)
    if run is not None:
        check_fingerprint("questions", compute_fingerprint(exhibition), run)
        return VqaTask(config, exhibition, *load_vocabulary_and_answers(run))
    asked = exhibition.training.questions
    vocabulary = build_token_vocabulary([one.text for one in asked], VocabularyConfig("blank", 10_000))
    return VqaTask(config, exhibition, vocabulary, sorted({one.answer for one in asked}))


def load_vocabulary_and_answers(run: Path) -> tuple[Vocabulary, list[str]]:
    """The words and answers of a run."""
    path = run / ANSWERS
    try:
        answers = [str(answer) for answer in parse_json(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        fix = "check the run folder, or restore the file from a copy"
        raise wrong("answers", f"{path} ({type(error).__name__})", "a list that regard saved", fix) from None
    return load_vocabulary(run / VOCABULARY, QUESTIONS), answers


def check_lengths(dataset: VqaDataset, limit: int) -> None:
    """Raises where a question of the data is longer than any that may be asked."""
    longest = max(len(one.text.split()) for part in dataset for one in part.questions)
    if longest > limit:
        raise wrong("data.limit", limit, f"at least {longest}, the longest question", f"set data.limit={longest}")


def get_goal(config: VqaConfig) -> Goal:
    """What decides which weights are the best."""
    return Goal("accuracy", "higher")


def compute_fingerprint(dataset: VqaDataset) -> str:
    """A short name for the questions: others mean that a resumed run would not go on as it began."""
    return digest(
        f"{gallery.names[one.image]}\t{one.text}\t{one.answer}\n".encode()
        for gallery in dataset[:2]
        for one in gallery.questions
    )
