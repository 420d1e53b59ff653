"""Answering questions about images as something that can be trained."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.bounds import parse_json
from regard.errors import wrong
from regard.tasks.data import Vocabulary, VocabularyConfig, pad
from regard.tasks.data.fingerprints import check_same, digest, keep
from regard.tasks.data.parts import repeated, sizes
from regard.tasks.data.shuffling import shuffled
from regard.tasks.data.vocabularies import load as load_vocabulary
from regard.tasks.data.vocabulary import count_tokens
from regard.tasks.vqa.answering import Answerer, Batch
from regard.tasks.vqa.config import VqaConfig
from regard.tasks.vqa.questions import YES_NO, Exhibition, Gallery, open_questions
from regard.training import Batched, Goal, Loss, Part

VOCABULARY, QUESTIONS, ANSWERS = "vocabulary", "questions", "answers.json"
UNSEEN = -1  # an answer that was never learned, and is therefore always wrong
TOGETHER = 100  # images that are measured at once


class Vqa:
    """Learns to answer. See `regard.training.Task` for what each method is."""

    def __init__(
        self, config: VqaConfig, exhibition: Exhibition, vocabulary: Vocabulary, answers: Sequence[str]
    ) -> None:
        self.config, self.exhibition, self.vocabulary, self.answers = config, exhibition, vocabulary, list(answers)

    @property
    def goal(self) -> Goal:
        return goal_of(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the data."""
        known, checked, test = self.exhibition
        learned = f"{len(known.names):,} images with {len(known.questions):,} questions to learn from"
        counted = sizes("questions", len(known.questions), len(checked.questions), {"test": len(test.questions)})
        held_out = {"validation": looks(checked), "test": looks(test)}
        return (counted, learned, *repeated("images", looks(known), held_out))

    def model(self) -> Answerer:
        return answerer(self.config, len(self.vocabulary), len(self.answers))

    def epoch(self, number: int, part: Part) -> Sequence[Batch]:
        gallery, seed = self.exhibition.training, self.config.training.seed
        groups = shuffled(len(gallery.names), self.config.learning.images, seed, number, part)
        return Batched(groups, lambda chosen: self.batch(gallery, chosen))

    def batch(self, gallery: Gallery, chosen: Sequence[int]) -> Batch:
        """Some images with all of their questions."""
        owners = [place for place, image in enumerate(chosen) for _ in gallery.by_image[image]]
        asked = [gallery.questions[number] for image in chosen for number in gallery.by_image[image]]
        pixels = torch.from_numpy(gallery.pixels[list(chosen)]).permute(0, 3, 1, 2).float().div_(255)
        known = {answer: number for number, answer in enumerate(self.answers)}
        answers = torch.tensor([known.get(one.answer, UNSEEN) for one in asked])
        questions, lengths = numbered([one.text for one in asked], self.vocabulary)
        return Batch(pixels, questions, lengths, torch.tensor(owners), answers)

    def loss(self, model: Any, batch: Batch) -> Loss:
        scores = model(batch).scores
        known = batch.answers != UNSEEN
        total = torch.nn.functional.cross_entropy(scores[known], batch.answers[known], reduction="sum")
        return Loss(total, int(known.sum()))

    def measure(self, model: Any, part: Part) -> Mapping[str, float]:
        return self.counted(model, self.exhibition.validation, part)

    def counted(self, model: Any, gallery: Gallery, part: Part) -> dict[str, float]:
        """How many questions there are and how many are answered rightly, yes and no apart from the others."""
        sums = dict.fromkeys(("loss", "closed", "closed right", "open", "open right"), 0.0)
        own, device = part.of(range(len(gallery.names))), next(model.parameters()).device
        closed_ones = [number for number, answer in enumerate(self.answers) if answer in YES_NO]
        for start in range(0, len(own), TOGETHER):
            batch = Batch(*(tensor.to(device) for tensor in self.batch(gallery, own[start : start + TOGETHER])))
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
        keep(folder, fingerprint(self.exhibition))


def looks(gallery: Gallery) -> list[str]:
    """A short name for the pixels of each image."""
    return [digest([image.tobytes()]) for image in gallery.pixels]


def numbered(texts: Sequence[str], vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """Questions in numbers, padded, and their lengths."""
    rows = [vocabulary.encode(text) for text in texts]
    return pad(rows), torch.tensor([len(row) for row in rows])


def answerer(config: VqaConfig, words: int, answers: int) -> Answerer:
    """The model for so many words and answers."""
    side = config.data.pixels >> len(config.model.channels)
    if side < 1:
        fix = f"use fewer convolutions, or data.pixels={2 ** len(config.model.channels)}"
        raise wrong("model.channels", f"{len(config.model.channels)} convolutions", "a region to be left", fix)
    return Answerer(config.model, regions=side**2, words=words, answers=answers)


def task(config: VqaConfig, run: Path | None = None) -> Vqa:
    """The task of a new run, or of one that has its words and answers in a folder."""
    exhibition = open_questions(config.data)
    check_lengths(exhibition, config.data.limit)
    if run is not None:
        check_same("questions", fingerprint(exhibition), run)
        return Vqa(config, exhibition, *kept(run))
    asked = exhibition.training.questions
    vocabulary = count_tokens([one.text for one in asked], VocabularyConfig("blank", 10_000))
    return Vqa(config, exhibition, vocabulary, sorted({one.answer for one in asked}))


def kept(run: Path) -> tuple[Vocabulary, list[str]]:
    """The words and answers of a run."""
    path = run / ANSWERS
    try:
        answers = [str(answer) for answer in parse_json(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        fix = "check the run folder, or restore the file from a copy"
        raise wrong("answers", f"{path} ({type(error).__name__})", "a list that regard saved", fix) from None
    return load_vocabulary(run / VOCABULARY, QUESTIONS), answers


def check_lengths(exhibition: Exhibition, limit: int) -> None:
    """Raises where a question of the data is longer than any that may be asked."""
    longest = max(len(one.text.split()) for part in exhibition for one in part.questions)
    if longest > limit:
        raise wrong("data.limit", limit, f"at least {longest}, the longest question", f"set data.limit={longest}")


def goal_of(config: VqaConfig) -> Goal:
    """What decides which weights are the best."""
    return Goal("accuracy", "higher")


def fingerprint(exhibition: Exhibition) -> str:
    """A short name for the questions: others mean that a resumed run would not go on as it began."""
    return digest(
        f"{gallery.names[one.image]}\t{one.text}\t{one.answer}\n".encode()
        for gallery in exhibition[:2]
        for one in gallery.questions
    )
