"""Captioning: from images to words, and the regions attended to for each (*Show, Attend and Tell*, Xu et al. 2015)."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from regard.models import EncoderDecoder
from regard.tasks.captioning.config import (
    AttentionKind,
    CaptioningConfig,
    CaptioningData,
    configure_for_photos,
    configure_for_scenes,
)
from regard.tasks.captioning.datasets import CaptioningDataset, build_dataset, open_dataset
from regard.tasks.captioning.model import build_captioner
from regard.tasks.captioning.predictor import CaptioningPredictor
from regard.tasks.captioning.task import CAPTIONS, VOCABULARY, CaptioningTask
from regard.tasks.data.vocabularies import build_vocabulary, load_vocabulary
from regard.tasks.definition import TaskDefinition
from regard.tasks.images.scene_language import LANGUAGES
from regard.tasks.prediction import load_model


class CaptioningDefinition(TaskDefinition[CaptioningConfig]):
    """Say what is in an image."""

    presets: Mapping[str, AttentionKind] = {name: name for name in get_args(AttentionKind)}
    data_help = """IMAGES is scenes or scenes-zh (drawn here, endless, with captions in English or Chinese), or a folder
with captions.tsv (lines of an image and a caption with a tab between, of which a tenth each is held out for validation
and test, or with train, dev or test before them; also .gz), or the text files of Flickr8k, and the images, in a folder
`images` or in images.zip."""
    data_field, data_noun = "images", "captions"
    run_name = "captioning-{data}-{preset}"

    def build_preset(self, name: str, data: CaptioningData) -> CaptioningConfig:
        base = configure_for_scenes() if data.images in LANGUAGES else configure_for_photos()
        return replace(base, data=data, model=replace(base.model, attention=self.presets[name]))

    def open_data(self, config: CaptioningConfig) -> CaptioningDataset:
        return open_dataset(config.data)

    def assemble_task(self, config: CaptioningConfig, data: CaptioningDataset, run: Path | None) -> CaptioningTask:
        if run is not None:
            return CaptioningTask(config, data, load_vocabulary(run / VOCABULARY, CAPTIONS))
        texts = [caption for captions in data.load_training(0).captions for caption in captions]
        return CaptioningTask(config, data, build_vocabulary(texts, config.vocabulary))

    def load(self, config: CaptioningConfig, run: Path, weights: Path | None = None) -> CaptioningPredictor:
        dataset, vocabulary = build_dataset(config.data), load_vocabulary(run / VOCABULARY, CAPTIONS)
        words = len(vocabulary)
        model = load_model(lambda: build_captioner(config.model, dataset, words), config.training, run, weights)
        return CaptioningPredictor(config, dataset, vocabulary, cast(EncoderDecoder[Any], model))


__all__ = ["CaptioningConfig", "CaptioningDefinition", "CaptioningPredictor", "CaptioningTask"]
