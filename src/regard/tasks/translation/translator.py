"""A trained translator: the model of a run folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from regard.datasets.text import clean
from regard.models import EncoderDecoder, build_model
from regard.tasks.data import Vocabularies, load_vocabularies
from regard.tasks.prediction import find_weights, load_model
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.translations import TranslationResult, TranslationSearchOptions, translate


class Translator:
    """A model and its vocabularies.

    translator = Translator.load(config, Path("runs/numbers-bahdanau"))
    translator.translate(["twenty-one"], Search())
    """

    def __init__(self, config: TranslationConfig, vocabularies: Vocabularies, model: EncoderDecoder[Any]) -> None:
        self.config, self.vocabularies, self.model = config, vocabularies, model

    @classmethod
    def load(cls, config: TranslationConfig, run: Path, weights: Path | None = None) -> "Translator":
        """Return the translator of a run folder, with its best weights or others of the same model."""
        find_weights(run, weights)  # first: without weights, the message should not be about missing vocabularies
        vocabularies = load_vocabularies(run)
        words = {"source": len(vocabularies.source), "target": len(vocabularies.target)}
        model = load_model(lambda: build_model(config.model, **words), config.training, run, weights)
        return cls(config, vocabularies, cast(EncoderDecoder[Any], model))

    def translate(
        self, texts: Sequence[str], search: TranslationSearchOptions, *, attention: bool = False
    ) -> list[TranslationResult]:
        """Translate texts, cleaned as the training data were, and return the results in their order.

        The translation of a blank text is empty.
        """
        texts = [clean(text) for text in texts]
        blank = {place for place, text in enumerate(texts) if not text}
        full = [text for place, text in enumerate(texts) if place not in blank]
        with torch.inference_mode():
            found = iter(self.translate_nonblank(full, self.limit_length(search), attention=attention))
        return [TranslationResult([], [], ()) if place in blank else next(found) for place in range(len(texts))]

    def translate_nonblank(
        self, texts: Sequence[str], search: TranslationSearchOptions, *, attention: bool
    ) -> list[TranslationResult]:
        """Translate texts that are not blank: the part that depends on the engine."""
        return translate(self.model, self.vocabularies, texts, search, attention=attention)

    def limit_length(self, search: TranslationSearchOptions) -> TranslationSearchOptions:
        """Limit the length to the positions that the model has."""
        return replace(search, longest=min(search.longest, self.config.model.longest))
