"""A captioner that was trained, ready to be asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.algebra.shapes import Tensor
from regard.errors import wrong
from regard.inspect.draw.chapters import Regions
from regard.models import Beam, Model
from regard.tasks.captioning.building import build
from regard.tasks.captioning.captioning import Told, plan_of, tell
from regard.tasks.captioning.collections import Album, Collection, album_of, open_album
from regard.tasks.captioning.config import CaptioningConfig
from regard.tasks.captioning.scoring import scores, sums
from regard.tasks.captioning.task import CAPTIONS, VOCABULARY, said_of
from regard.tasks.data import Vocabulary
from regard.tasks.data.vocabularies import load as load_vocabulary
from regard.tasks.images import open_photo, reduced
from regard.tasks.images.photos import pillow
from regard.tasks.images.regions import grid_of, region_names
from regard.tasks.predicting import Map, Prediction, Report, Split, nowhere, trained

if TYPE_CHECKING:
    from PIL.Image import Image

BEAM = 5
NOTE = "BLEU against all captions of an image, lower case, without punctuation; beam of {beam}"


class Captioner:
    """Says what is in images, and where it looked for each word."""

    def __init__(self, config: CaptioningConfig, album: Album, vocabulary: Vocabulary, model: Model[Any]) -> None:
        self.config, self.album, self.vocabulary, self.model = config, album, vocabulary, model

    @property
    def plan(self) -> Beam | None:
        """How captions are searched for."""
        return plan_of(BEAM, self.config.measure.length)

    def evaluate(self, data: str | None, split: Split) -> dict[str, Report]:
        album = self.album if data is None else open_album(replace(self.config.data, images=data))
        sets: Mapping[str, Collection] = album.tests() if split == "test" else {"validation": album.validation()}
        return {name: self.report(one) for name, one in sets.items()}

    def report(self, collection: Collection) -> Report:
        """BLEU and exact matches of one set."""
        own = range(len(collection.captions))
        said = said_of(self.model, self.vocabulary, collection, own, self.plan)
        found = scores(sums(said, collection.captions))
        del found["bleu"]  # the same as bleu-4
        return Report(len(said), found, [NOTE.format(beam=BEAM)])

    def predict(self, words: Sequence[str]) -> Prediction:
        if len(words) > 1:
            raise wrong("photo", f"{len(words)} names", "one", "name one file")
        if words:
            return self.caption(open_photo(Path(words[0])), Path(words[0]).name)
        collection = next(iter(self.album.tests().values()))
        picture = pillow().fromarray(self.album.picture(collection, 0))
        return self.prediction(collection.look([0]), picture, collection.names[0])

    def caption(self, photo: "Image", name: str) -> Prediction:
        """What is in a photograph."""
        return self.prediction(self.album.prepared(photo), photo, name)

    def prediction(self, source: Tensor, photo: "Image", name: str) -> Prediction:
        """The caption of an image, as the encoder is given it and as people see it."""
        one = self.tell(source)
        values = {"image": name, "text": one.text, "words": one.words, "score": one.score}
        if one.weights is None:
            return Prediction(one.text, values, lambda: drawn(photo, one))
        values["weights"] = [[round(weight, 6) for weight in row] for row in one.weights.tolist()]
        shown = Map(one.weights.tolist(), region_names(self.album.regions), one.words)
        beside = Regions(reduced(photo), grid_of(self.album.regions))
        return Prediction(one.text, values, lambda: drawn(photo, one), shown, beside=beside)

    def tell(self, source: Tensor) -> Told:
        """The caption of one image."""
        return tell(self.model, self.vocabulary, source, plan=self.plan, attention=True)[0]


def drawn(photo: "Image", one: Told) -> Any:
    """The image once for each word, with where it was looked for."""
    from regard.inspect.draw.overlay import overlay

    if one.weights is None:
        raise nowhere("captioner", "its image", "soft")
    return overlay(np.asarray(photo), one.weights.cpu().numpy(), one.words)


def load(config: CaptioningConfig, run: Path, weights: Path | None = None) -> Captioner:
    """The captioner of a run folder, with its best weights or others."""
    album, vocabulary = album_of(config.data), load_vocabulary(run / VOCABULARY, CAPTIONS)
    model = trained(lambda: build(config.model, album, len(vocabulary)), config.training, run, weights)
    return Captioner(config, album, vocabulary, model)  # type: ignore[arg-type]
