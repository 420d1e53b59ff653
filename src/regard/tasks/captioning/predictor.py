"""Predictions of a trained captioner."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.algebra.shapes import Tensor
from regard.errors import wrong
from regard.inspect.draw.words import Language
from regard.inspect.recording import Recording
from regard.models import BeamOptions, EncoderDecoder
from regard.tasks.captioning.config import CaptioningConfig
from regard.tasks.captioning.datasets import CaptionedImages, CaptioningDataset, PhotoDataset, open_dataset
from regard.tasks.captioning.generation import Caption, build_search_options, encode_images, generate_captions
from regard.tasks.captioning.metrics import compute_metrics, compute_sums
from regard.tasks.captioning.task import CaptioningTask, caption_images
from regard.tasks.data import Vocabulary
from regard.tasks.data.held_out import is_same_source
from regard.tasks.data.words import join_words
from regard.tasks.images import open_photo
from regard.tasks.images.photos import import_pillow
from regard.tasks.images.regions import build_region_prediction, name_regions
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, Prediction, no_attention_error
from regard.tasks.recorded_attention import record_source_attention

if TYPE_CHECKING:
    from PIL.Image import Image

BEAM = 5
NOTE = "BLEU against all captions of an image, lower case, without punctuation; beam of {beam}"


class CaptioningPredictor:
    """Evaluates a captioner, and captions one image."""

    def __init__(
        self, config: CaptioningConfig, dataset: CaptioningDataset, vocabulary: Vocabulary, model: EncoderDecoder[Any]
    ) -> None:
        self.config, self.dataset, self.vocabulary, self.model = config, dataset, vocabulary, model

    @property
    def search_options(self) -> BeamOptions | None:
        """Options of the beam search."""
        return build_search_options(BEAM, self.config.measure.length)

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        is_own = is_same_source(data, self.config.data.images)
        dataset = self.dataset if data is None or is_own else open_dataset(replace(self.config.data, images=data))
        if not is_own and isinstance(dataset, PhotoDataset) and not dataset.has_splits:
            return {dataset.folder.name: self.evaluate_images(dataset.load_images(dataset.list_captions()))}
        sets = dataset.tests if split == "test" else {"validation": dataset.validation}
        return {name: self.evaluate_images(images) for name, images in sets.items()}

    def evaluate_images(self, collection: CaptionedImages) -> EvaluationReport:
        """Return BLEU and exact matches of one set."""
        numbers = range(len(collection.captions))
        captions = caption_images(self.model, self.vocabulary, collection, numbers, self.search_options)
        metrics = compute_metrics(compute_sums(captions, collection.captions))
        del metrics["bleu"]  # the same as bleu-4
        return EvaluationReport(len(captions), metrics, [CaptioningTask.units, NOTE.format(beam=BEAM)])

    def predict(self, words: Sequence[str]) -> Prediction:
        if len(words) > 1:
            raise wrong("photo", f"{len(words)} names", "one", "name one file")
        if words:
            return self.caption(open_photo(Path(words[0])), Path(words[0]).name)
        collection = next(iter(self.dataset.tests.values()))
        picture = import_pillow().fromarray(self.dataset.load_picture(collection, 0))
        return self.build_prediction(collection.load_inputs([0]), picture, collection.names[0])

    def caption(self, photo: "Image", name: str) -> Prediction:
        """Caption a photograph."""
        return self.build_prediction(self.dataset.prepare_photo(photo), photo, name)

    def build_prediction(self, source: Tensor, photo: "Image", name: str) -> Prediction:
        """Caption an image, given as the encoder takes it and as people see it."""
        caption = self.generate_caption(source)
        text = join_words(caption.text)
        values = {"image": name, "text": text, "words": caption.words, "score": caption.score}
        if caption.weights is None:
            return Prediction(text, values, raise_no_attention)
        found = build_region_prediction(text, values, photo, caption.weights, caption.words)
        return found._replace(recording=self.record_attention(source, caption))

    def record_attention(self, source: Tensor, caption: Caption) -> Recording | None:
        """Return the attention of each word over the regions, and what made it."""
        if not caption.words or caption.weights is None:
            return None
        device = next(self.model.parameters()).device
        labels = caption.words, name_regions(caption.weights.shape[1])
        return record_source_attention(
            self.model, lambda: encode_images(self.model, source.to(device)), caption.tokens[:-1], labels
        )

    def generate_caption(self, source: Tensor) -> Caption:
        """Return the caption of one image."""
        return generate_captions(self.model, self.vocabulary, source, options=self.search_options, attention=True)[0]


def raise_no_attention(title: str = "", language: Language = "en") -> Any:
    """Raise, in place of a drawing."""
    raise no_attention_error("captioner", "its image", "soft")
