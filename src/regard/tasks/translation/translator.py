"""A translator that was trained: a run folder, opened."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.errors import wrong
from regard.models import Model, build
from regard.tasks.data import Vocabularies, load_both
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.translating import Search, Translated, translate
from regard.training import restore, unpack
from regard.training.folder import how_to_go_on
from regard.training.runtime import chosen

WEIGHTS = "weights.safetensors"


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
        file = run / WEIGHTS if weights is None else located(run, weights)
        if weights is None and not file.is_file():
            raise wrong("run", f"{run}, which has no weights yet", "at least one checkpoint", how_to_go_on(run))
        vocabularies, device = load_both(run), chosen(config.training.device)
        model = build(config.model, source=len(vocabularies.source), target=len(vocabularies.target))
        restore(model, unpack(file), file)
        return cls(config, vocabularies, model.to(device).eval())

    def translate(self, texts: Sequence[str], search: Search, *, attention: bool = False) -> list[Translated]:
        """Translations in the order of the texts. A text of nothing but blanks has a translation of nothing."""
        blank = {place for place, text in enumerate(texts) if not text.strip()}
        full = [text for place, text in enumerate(texts) if place not in blank]
        with torch.inference_mode():
            found = iter(translate(self.model, self.vocabularies, full, self.fitted(search), attention=attention))
        return [Translated([], []) if place in blank else next(found) for place in range(len(texts))]

    def fitted(self, search: Search) -> Search:
        """No longer than the model has positions for."""
        return replace(search, longest=min(search.longest, self.config.model.longest))


def located(run: Path, weights: Path) -> Path:
    """Weights by their path, or by their name in the run folder, with or without the ending."""
    for path in (weights, run / weights, run / f"{weights}.safetensors"):
        if path.is_file():
            return path
    there = ", ".join(sorted(path.stem for path in run.glob("*.safetensors"))) or "none"
    raise wrong("weights", f"no {weights}", f"a file, or one of those in {run}: {there}", "check the name")
