"""How a captioner is trained and measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.models import BeamOptions, EncoderDecoder
from regard.tasks.captioning.datasets import CaptionedImages
from regard.tasks.captioning.generation import build_search_options, generate_captions, split_into_batches
from regard.tasks.captioning.loss import CaptioningBatch, compute_loss
from regard.tasks.captioning.metrics import compute_metrics, compute_sums
from regard.tasks.captioning.model import build_captioner
from regard.tasks.data import BEGIN, END, Vocabulary, filter_by_length
from regard.tasks.data.batches import pad_rows
from regard.tasks.data.words import describe_repetition
from regard.tasks.sequence_task import SequenceTask
from regard.training import DataShare, Loss

VOCABULARY, CAPTIONS = "vocabulary", "captions"


class Examples(NamedTuple):
    """Every caption as token ids, closed by END, with the number of its image."""

    collection: CaptionedImages
    images: Sequence[int]
    captions: Sequence[list[int]]
    notes: Sequence[str] = ()

    @property
    def lengths(self) -> list[int]:
        """Lengths of the captions, END included."""
        return [len(caption) for caption in self.captions]

    def select_images(self, images: Sequence[int]) -> "Examples":
        """Return the captions of some images."""
        wanted = set(images)
        kept = [index for index, image in enumerate(self.images) if image in wanted]
        return self._replace(
            images=[self.images[index] for index in kept], captions=[self.captions[index] for index in kept]
        )

    def collate(self, chosen: Sequence[int]) -> CaptioningBatch:
        """Return some of the captions with their images as a batch."""
        source = self.collection.load_inputs([self.images[number] for number in chosen])
        return CaptioningBatch(source, *pad_rows([self.captions[number] for number in chosen], BEGIN))


class CaptioningTask(SequenceTask):
    """Learns to say what is in an image. See `regard.training.Task` for what each method is."""

    units = "bleu, bleu-1 to bleu-4: from 0 to 100; exact: percent of the captions; loss: nats a word"

    @property
    def notes(self) -> Sequence[str]:
        """What is worth knowing about the captions."""
        captions = (caption for captions in self.dataset.load_training(0).captions for caption in captions)
        repeated = describe_repetition("captions", (word for caption in captions for word in caption.split()))
        return (*self.dataset.describe(), *self.get_encoded(0).notes, *repeated)

    def model(self) -> EncoderDecoder[Any]:
        return build_captioner(self.config.model, self.dataset, len(self.vocabulary))

    def encode_epoch(self, epoch: int) -> Examples:
        return encode_captions(self.dataset.load_training(epoch), self.vocabulary, self.config.learning.limit)

    def loss(self, model: Any, batch: CaptioningBatch) -> Loss:
        losses = compute_loss(model, batch, self.config.learning)
        return Loss(losses.total, losses.words)

    def measure(self, model: Any, part: DataShare) -> Mapping[str, float]:
        held_out = self.dataset.validation.take_first(self.config.measure.most)
        own = part.select(range(len(held_out.captions)))
        examples = encode_captions(held_out, self.vocabulary, self.config.learning.limit).select_images(own)
        return self.measure_loss(model, examples) | self.measure_quality(model, held_out, own)

    def measure_loss(self, model: Any, held_out: Examples) -> dict[str, float]:
        sums, device = {"surprise": 0.0, "words": 0.0}, next(model.parameters()).device
        for chosen in split_into_batches(len(held_out.captions)):
            batch = CaptioningBatch(*(tensor.to(device) for tensor in held_out.collate(chosen)))
            losses = compute_loss(model, batch, self.config.learning)
            sums["surprise"] += float(losses.negative_log_likelihood)
            sums["words"] += losses.words
        return sums

    def measure_quality(self, model: Any, collection: CaptionedImages, own: Sequence[int]) -> dict[str, float]:
        """Return what the quality of the model's captions is computed from."""
        options = build_search_options(self.config.measure.beam, self.config.measure.length)
        captions = caption_images(model, self.vocabulary, collection, own, options)
        return compute_sums(captions, [collection.captions[number] for number in own])

    def metrics(self, total: Mapping[str, float]) -> dict[str, float]:
        return {"loss": total["surprise"] / total["words"]} | compute_metrics(total)

    def save_vocabulary(self, folder: Path) -> None:
        (folder / VOCABULARY).mkdir(exist_ok=True)
        self.vocabulary.save(folder / VOCABULARY, CAPTIONS)


def encode_captions(collection: CaptionedImages, vocabulary: Vocabulary, limit: int) -> Examples:
    """Encode the captions of at most `limit` words, with a note on the others."""
    pairs = [(image, text) for image, texts in enumerate(collection.captions) for text in texts]
    captions = [[*vocabulary.encode(text), END] for _, text in pairs]
    kept, notes = filter_by_length([len(caption) - 1 for caption in captions], limit, "captions")
    return Examples(collection, [pairs[index][0] for index in kept], [captions[index] for index in kept], notes)


def caption_images(
    model: Any, vocabulary: Vocabulary, collection: CaptionedImages, own: Sequence[int], options: BeamOptions | None
) -> list[str]:
    """Return the captions that the model generates for some images."""
    texts: list[str] = []
    for chosen in split_into_batches(len(own)):
        source = collection.load_inputs([own[index] for index in chosen])
        texts += [caption.text for caption in generate_captions(model, vocabulary, source, options=options)]
    return texts
