"""Captioning as something that can be trained."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.models import BeamOptions, EncoderDecoder
from regard.tasks.captioning.config import CaptioningConfig
from regard.tasks.captioning.datasets import CaptionedImages, CaptioningDataset, open_dataset
from regard.tasks.captioning.generation import build_search_options, generate_captions, split_into_batches
from regard.tasks.captioning.loss import CaptioningBatch, compute_loss
from regard.tasks.captioning.metrics import compute_metrics, compute_sums
from regard.tasks.captioning.model import build_captioner
from regard.tasks.data import BEGIN, END, Vocabulary, filter_by_length, make_batches, pad
from regard.tasks.data.fingerprints import check_fingerprint, digest, save_fingerprint
from regard.tasks.data.vocabularies import build_vocabulary as build_vocabulary
from regard.tasks.data.vocabularies import load_vocabulary as load_vocabulary
from regard.training import DataShare, Goal, LazyBatches, Loss

VOCABULARY, CAPTIONS = "vocabulary", "captions"


class Examples(NamedTuple):
    """Every caption in numbers, closed by END, with the number of its image."""

    collection: CaptionedImages
    images: Sequence[int]
    captions: Sequence[list[int]]
    notes: Sequence[str] = ()

    def collate(self, chosen: Sequence[int]) -> CaptioningBatch:
        """Some of them as tensors."""
        source = self.collection.load_inputs([self.images[number] for number in chosen])
        targets = [[BEGIN, *self.captions[number]] for number in chosen]
        return CaptioningBatch(source, pad(targets), torch.tensor([len(target) for target in targets]))


class CaptioningTask:
    """Learns to say what is in an image. See `regard.training.Task` for what each method is."""

    def __init__(self, config: CaptioningConfig, dataset: CaptioningDataset, vocabulary: Vocabulary) -> None:
        self.config, self.dataset, self.vocabulary = config, dataset, vocabulary
        self.get_examples = lru_cache(maxsize=1)(self.encode_epoch)

    @property
    def goal(self) -> Goal:
        return get_goal(self.config)

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the captions."""
        return (*self.dataset.describe(), *self.get_examples(0).notes)

    def model(self) -> EncoderDecoder[Any]:
        return build_captioner(self.config.model, self.dataset, len(self.vocabulary))

    def encode_epoch(self, epoch: int) -> Examples:
        """The captions to learn from in an epoch; photographs have the same in each."""
        return encode_captions(self.dataset.training(epoch), self.vocabulary, self.config.learning.limit)

    def epoch(self, number: int, part: DataShare) -> Sequence[CaptioningBatch]:
        examples = self.get_examples(number if self.dataset.endless else 0)
        lengths = [len(caption) for caption in examples.captions]
        seed, budget = self.config.training.seed, self.config.learning.budget
        chosen = make_batches(lengths, budget, seed, number, rank=part.rank, world=part.world)
        return LazyBatches(chosen, examples.collate)

    def loss(self, model: Any, batch: CaptioningBatch) -> Loss:
        lesson = compute_loss(model, batch, self.config.learning)
        return Loss(lesson.total, lesson.words)

    def measure(self, model: Any, part: DataShare) -> Mapping[str, float]:
        held_out = self.dataset.get_validation_set().take_first(self.config.measure.most)
        own = part.select(range(len(held_out.captions)))
        return self.measure_loss(model, held_out, own) | self.measure_quality(model, held_out, own)

    def measure_loss(self, model: Any, collection: CaptionedImages, own: Sequence[int]) -> dict[str, float]:
        """How unlikely the right captions are to the model."""
        counted, device = {"surprise": 0.0, "words": 0.0}, next(model.parameters()).device
        examples = encode_captions(collection, self.vocabulary, self.config.learning.limit)
        mine = set(own)
        places = [place for place, image in enumerate(examples.images) if image in mine]
        for chosen in split_into_batches(len(places)):
            batch = examples.collate([places[number] for number in chosen])
            lesson = compute_loss(
                model, CaptioningBatch(*(tensor.to(device) for tensor in batch)), self.config.learning
            )
            counted["surprise"] += float(lesson.negative_log_likelihood)
            counted["words"] += lesson.words
        return counted

    def measure_quality(self, model: Any, collection: CaptionedImages, own: Sequence[int]) -> dict[str, float]:
        """How good the model's own captions are."""
        plan = build_search_options(self.config.measure.beam, self.config.measure.length)
        said = caption_images(model, self.vocabulary, collection, own, plan)
        return compute_sums(said, [collection.captions[number] for number in own])

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / total["words"]} | compute_metrics(total)

    def save(self, folder: Path) -> None:
        (folder / VOCABULARY).mkdir(exist_ok=True)
        self.vocabulary.save(folder / VOCABULARY, CAPTIONS)
        save_fingerprint(folder, compute_fingerprint(self.dataset))


def encode_captions(collection: CaptionedImages, vocabulary: Vocabulary, limit: int) -> Examples:
    """Every caption of at most `limit` words, and a note on the others."""
    pairs = [(image, caption) for image, own in enumerate(collection.captions) for caption in own]
    captions = [[*vocabulary.encode(caption), END] for _, caption in pairs]
    kept, notes = filter_by_length([len(caption) - 1 for caption in captions], limit, "captions")
    images = [pairs[place][0] for place in kept]
    return Examples(collection, images, [captions[place] for place in kept], notes)


def caption_images(
    model: Any, vocabulary: Vocabulary, collection: CaptionedImages, own: Sequence[int], options: BeamOptions | None
) -> list[str]:
    """What the model says of some images."""
    said = []
    for chosen in split_into_batches(len(own)):
        source = collection.load_inputs([own[place] for place in chosen])
        said += [one.text for one in generate_captions(model, vocabulary, source, options=options)]
    return said


def build_task(config: CaptioningConfig, run: Path | None = None) -> CaptioningTask:
    """The task of a new run, or of one that has its vocabulary in a folder."""
    album = open_dataset(config.data)
    if run is not None:
        check_fingerprint("captions", compute_fingerprint(album), run)
        return CaptioningTask(config, album, load_vocabulary(run / VOCABULARY, CAPTIONS))
    known = album.training(0).captions
    texts = [caption for own in known for caption in own]
    return CaptioningTask(config, album, build_vocabulary(texts, config.vocabulary))


def get_goal(config: CaptioningConfig) -> Goal:
    """What decides which weights are the best."""
    metric = config.measure.goal
    return Goal(metric, "lower" if metric == "loss" else "higher")


def compute_fingerprint(dataset: CaptioningDataset) -> str:
    """A short name for the captions: others mean that a resumed run would not go on as it began."""
    pairs = [
        pair
        for collection in (dataset.training(0), dataset.get_validation_set())
        for pair in zip(collection.names, collection.captions, strict=True)
    ]
    return digest(f"{name}\t{'|'.join(own)}\n".encode() for name, own in pairs)
