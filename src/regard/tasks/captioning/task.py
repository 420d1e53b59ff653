"""Captioning as something that can be trained."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.models import Beam, Model
from regard.tasks.captioning.building import build
from regard.tasks.captioning.captioning import groups, plan_of, tell
from regard.tasks.captioning.collections import Album, Collection, open_album
from regard.tasks.captioning.config import CaptioningConfig
from regard.tasks.captioning.learning import Batch, judged
from regard.tasks.captioning.scoring import scores, sums
from regard.tasks.data import BEGIN, END, Vocabulary, batches, fitting, pad
from regard.tasks.data.fingerprints import check_same, digest, keep
from regard.tasks.data.vocabularies import build as build_vocabulary
from regard.tasks.data.vocabularies import load as load_vocabulary
from regard.training import Batched, Goal, Loss, Part

VOCABULARY, CAPTIONS = "vocabulary", "captions"


class Examples(NamedTuple):
    """Every caption in numbers, closed by END, with the number of its image."""

    collection: Collection
    images: Sequence[int]
    captions: Sequence[list[int]]
    notes: Sequence[str] = ()

    def batch(self, chosen: Sequence[int]) -> Batch:
        """Some of them as tensors."""
        source = self.collection.look([self.images[number] for number in chosen])
        targets = [[BEGIN, *self.captions[number]] for number in chosen]
        return Batch(source, pad(targets), torch.tensor([len(target) for target in targets]))


class Captioning:
    """Learns to say what is in an image. See `regard.training.Task` for what each method is."""

    def __init__(self, config: CaptioningConfig, album: Album, vocabulary: Vocabulary) -> None:
        self.config, self.album, self.vocabulary = config, album, vocabulary
        self.examples = lru_cache(maxsize=1)(self.examples_now)

    @property
    def goal(self) -> Goal:
        return goal_of(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the captions."""
        return (*self.album.about(), *self.examples(0).notes)

    def model(self) -> Model[Any]:
        return build(self.config.model, self.album, len(self.vocabulary))

    def examples_now(self, epoch: int) -> Examples:
        """The captions to learn from in an epoch; photographs have the same in each."""
        return numbered(self.album.training(epoch), self.vocabulary, self.config.learning.limit)

    def epoch(self, number: int, part: Part) -> Sequence[Batch]:
        examples = self.examples(number if self.album.endless else 0)
        lengths = [len(caption) for caption in examples.captions]
        seed, budget = self.config.training.seed, self.config.learning.budget
        chosen = batches(lengths, budget, seed, number, rank=part.rank, world=part.world)
        return Batched(chosen, examples.batch)

    def loss(self, model: Any, batch: Batch) -> Loss:
        lesson = judged(model, batch, self.config.learning)
        return Loss(lesson.total, lesson.words)

    def measure(self, model: Any, part: Part) -> Mapping[str, float]:
        held_out = self.album.validation().first(self.config.measure.most)
        own = part.of(range(len(held_out.captions)))
        return self.surprise(model, held_out, own) | self.quality(model, held_out, own)

    def surprise(self, model: Any, collection: Collection, own: Sequence[int]) -> dict[str, float]:
        """How unlikely the right captions are to the model."""
        counted, device = {"surprise": 0.0, "words": 0.0}, next(model.parameters()).device
        examples = numbered(collection, self.vocabulary, self.config.learning.limit)
        mine = set(own)
        places = [place for place, image in enumerate(examples.images) if image in mine]
        for chosen in groups(len(places)):
            batch = examples.batch([places[number] for number in chosen])
            lesson = judged(model, Batch(*(tensor.to(device) for tensor in batch)), self.config.learning)
            counted["surprise"] += float(lesson.surprise)
            counted["words"] += lesson.words
        return counted

    def quality(self, model: Any, collection: Collection, own: Sequence[int]) -> dict[str, float]:
        """How good the model's own captions are."""
        plan = plan_of(self.config.measure.beam, self.config.measure.length)
        said = said_of(model, self.vocabulary, collection, own, plan)
        return sums(said, [collection.captions[number] for number in own])

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / total["words"]} | scores(total)

    def save(self, folder: Path) -> None:
        (folder / VOCABULARY).mkdir(exist_ok=True)
        self.vocabulary.save(folder / VOCABULARY, CAPTIONS)
        keep(folder, fingerprint(self.album))


def numbered(collection: Collection, vocabulary: Vocabulary, limit: int) -> Examples:
    """Every caption of at most `limit` words, and a note on the others."""
    pairs = [(image, caption) for image, own in enumerate(collection.captions) for caption in own]
    captions = [[*vocabulary.encode(caption), END] for _, caption in pairs]
    kept, notes = fitting([len(caption) - 1 for caption in captions], limit, "captions")
    images = [pairs[place][0] for place in kept]
    return Examples(collection, images, [captions[place] for place in kept], notes)


def said_of(
    model: Any, vocabulary: Vocabulary, collection: Collection, own: Sequence[int], plan: Beam | None
) -> list[str]:
    """What the model says of some images."""
    said = []
    for chosen in groups(len(own)):
        source = collection.look([own[place] for place in chosen])
        said += [one.text for one in tell(model, vocabulary, source, plan=plan)]
    return said


def task(config: CaptioningConfig, run: Path | None = None) -> Captioning:
    """The task of a new run, or of one that has its vocabulary in a folder."""
    album = open_album(config.data)
    if run is not None:
        check_same("captions", fingerprint(album), run)
        return Captioning(config, album, load_vocabulary(run / VOCABULARY, CAPTIONS))
    known = album.training(0).captions
    texts = [caption for own in known for caption in own]
    return Captioning(config, album, build_vocabulary(texts, config.vocabulary))


def goal_of(config: CaptioningConfig) -> Goal:
    """What decides which weights are the best."""
    metric = config.measure.goal
    return Goal(metric, "lower" if metric == "loss" else "higher")


def fingerprint(album: Album) -> str:
    """A short name for the captions: others mean that a resumed run would not go on as it began."""
    pairs = [
        pair
        for collection in (album.training(0), album.validation())
        for pair in zip(collection.names, collection.captions, strict=True)
    ]
    return digest(f"{name}\t{'|'.join(own)}\n".encode() for name, own in pairs)
