"""A translator that was trained: a run folder, opened."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from regard.datasets.cleaning import clean
from regard.models import Model, build
from regard.tasks.data import Vocabularies, load_both
from regard.tasks.predicting import trained, weights_of
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.translating import Search, Translated, translate


class Translator:
    """A model and its vocabularies.

    translator = Translator.load(config, Path("runs/numbers-bahdanau"))
    translator.translate(["twenty-one"], Search())
    """

    def __init__(self, config: TranslationConfig, vocabularies: Vocabularies, model: Model[Any]) -> None:
        self.config, self.vocabularies, self.model = config, vocabularies, model

    @classmethod
    def load(cls, config: TranslationConfig, run: Path, weights: Path | None = None) -> "Translator":
        """The translator of a run folder, with its best weights or others of the same model."""
        weights_of(run, weights)  # whether there are any, before vocabularies are missed that come with them
        vocabularies = load_both(run)
        words = {"source": len(vocabularies.source), "target": len(vocabularies.target)}
        model = trained(lambda: build(config.model, **words), config.training, run, weights)
        return cls(config, vocabularies, cast(Model[Any], model))

    def translate(self, texts: Sequence[str], search: Search, *, attention: bool = False) -> list[Translated]:
        """Translations in the order of the texts, cleaned as those that were learned from.

        A text of nothing but blanks has a translation of nothing.
        """
        texts = [clean(text) for text in texts]
        blank = {place for place, text in enumerate(texts) if not text}
        full = [text for place, text in enumerate(texts) if place not in blank]
        with torch.inference_mode():
            found = iter(self.found(full, self.fitted(search), attention=attention))
        return [Translated([], [], ()) if place in blank else next(found) for place in range(len(texts))]

    def found(self, texts: Sequence[str], search: Search, *, attention: bool) -> list[Translated]:
        """Translations of texts that are not blank: what an engine does."""
        return translate(self.model, self.vocabularies, texts, search, attention=attention)

    def fitted(self, search: Search) -> Search:
        """No longer than the model has positions for."""
        return replace(search, longest=min(search.longest, self.config.model.longest))
