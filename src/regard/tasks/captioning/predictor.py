"""A captioner that was trained, ready to be asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.algebra.shapes import Tensor
from regard.errors import wrong
from regard.inspect.draw.chapters import Regions
from regard.models import BeamOptions, EncoderDecoder
from regard.tasks.captioning.config import CaptioningConfig
from regard.tasks.captioning.datasets import CaptionedImages, CaptioningDataset, build_dataset, open_dataset
from regard.tasks.captioning.generation import Caption, build_search_options, generate_captions
from regard.tasks.captioning.metrics import compute_metrics, compute_sums
from regard.tasks.captioning.model import build_captioner
from regard.tasks.captioning.task import CAPTIONS, VOCABULARY, caption_images
from regard.tasks.data import Vocabulary
from regard.tasks.data.vocabularies import load_vocabulary as load_vocabulary
from regard.tasks.images import make_thumbnail, open_photo
from regard.tasks.images.photos import import_pillow
from regard.tasks.images.regions import get_grid_shape, name_regions
from regard.tasks.prediction import (
    EvaluationReport,
    HeldOutSplit,
    LabeledWeights,
    Prediction,
    load_model,
    no_attention_error,
)

if TYPE_CHECKING:
    from PIL.Image import Image

BEAM = 5
NOTE = "BLEU against all captions of an image, lower case, without punctuation; beam of {beam}"


class CaptioningPredictor:
    """Says what is in images, and where it looked for each word."""

    def __init__(
        self, config: CaptioningConfig, dataset: CaptioningDataset, vocabulary: Vocabulary, model: EncoderDecoder[Any]
    ) -> None:
        self.config, self.dataset, self.vocabulary, self.model = config, dataset, vocabulary, model

    @property
    def search_options(self) -> BeamOptions | None:
        """How captions are searched for."""
        return build_search_options(BEAM, self.config.measure.length)

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        album = self.dataset if data is None else open_dataset(replace(self.config.data, images=data))
        sets: Mapping[str, CaptionedImages] = (
            album.get_test_sets() if split == "test" else {"validation": album.get_validation_set()}
        )
        return {name: self.evaluate_images(one) for name, one in sets.items()}

    def evaluate_images(self, collection: CaptionedImages) -> EvaluationReport:
        """BLEU and exact matches of one set."""
        own = range(len(collection.captions))
        said = caption_images(self.model, self.vocabulary, collection, own, self.search_options)
        found = compute_metrics(compute_sums(said, collection.captions))
        del found["bleu"]  # the same as bleu-4
        return EvaluationReport(len(said), found, [NOTE.format(beam=BEAM)])

    def predict(self, words: Sequence[str]) -> Prediction:
        if len(words) > 1:
            raise wrong("photo", f"{len(words)} names", "one", "name one file")
        if words:
            return self.caption(open_photo(Path(words[0])), Path(words[0]).name)
        collection = next(iter(self.dataset.get_test_sets().values()))
        picture = import_pillow().fromarray(self.dataset.load_picture(collection, 0))
        return self.build_prediction(collection.load_inputs([0]), picture, collection.names[0])

    def caption(self, photo: "Image", name: str) -> Prediction:
        """What is in a photograph."""
        return self.build_prediction(self.dataset.prepare_photo(photo), photo, name)

    def build_prediction(self, source: Tensor, photo: "Image", name: str) -> Prediction:
        """The caption of an image, as the encoder is given it and as people see it."""
        one = self.generate_caption(source)
        values = {"image": name, "text": one.text, "words": one.words, "score": one.score}
        if one.weights is None:
            return Prediction(one.text, values, lambda: draw_attention(photo, one))
        values["weights"] = [[round(weight, 6) for weight in row] for row in one.weights.tolist()]
        shown = LabeledWeights(one.weights.tolist(), name_regions(self.dataset.regions), one.words)
        beside = Regions(make_thumbnail(photo), get_grid_shape(self.dataset.regions))
        return Prediction(one.text, values, lambda: draw_attention(photo, one), shown, medium=beside)

    def generate_caption(self, source: Tensor) -> Caption:
        """The caption of one image."""
        return generate_captions(self.model, self.vocabulary, source, options=self.search_options, attention=True)[0]


def draw_attention(photo: "Image", one: Caption) -> Any:
    """The image once for each word, with where it was looked for."""
    from regard.inspect.draw.overlay import draw_overlay

    if one.weights is None:
        raise no_attention_error("captioner", "its image", "soft")
    return draw_overlay(np.asarray(photo), one.weights.cpu().numpy(), one.words)


def load(config: CaptioningConfig, run: Path, weights: Path | None = None) -> CaptioningPredictor:
    """The captioner of a run folder, with its best weights or others."""
    album, vocabulary = build_dataset(config.data), load_vocabulary(run / VOCABULARY, CAPTIONS)
    model = load_model(lambda: build_captioner(config.model, album, len(vocabulary)), config.training, run, weights)
    return CaptioningPredictor(config, album, vocabulary, model)  # type: ignore[arg-type]
