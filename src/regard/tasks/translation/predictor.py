"""A translator asked as any other task is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.datasets.cleaning import clean
from regard.errors import wrong
from regard.tasks.data import Corpus, Pair, fingerprint, open_text
from regard.tasks.data.fingerprints import check_held_out
from regard.tasks.predicting import Map, Prediction, Report, Split
from regard.tasks.translation import scoring
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.looking import unseen
from regard.tasks.translation.text import sets_to_test
from regard.tasks.translation.translating import Said, Search
from regard.tasks.translation.translator import Translator


class TranslationPredictor:
    """Says how good a translator is, and what it says to one sentence."""

    def __init__(self, translator: Translator, run: Path | None = None) -> None:
        self.translator, self.run = translator, run

    def evaluate(self, data: str | None, split: Split) -> dict[str, Report]:
        sets = sets_of(self.translator.config, data, split, self.run)
        return {name: self.report(pairs) for name, pairs in sets.items()}

    def report(self, pairs: Sequence[Pair]) -> Report:
        """BLEU, chrF and exact matches, with sacrebleu's signatures."""
        found = self.translator.translate([pair.source for pair in pairs], Search())
        said = [one.best[0].text if one.best else "" for one in found]
        tokenizer = self.translator.config.measure.tokenizer
        scored = scoring.report(said, [pair.target for pair in pairs], tokenizer)
        metrics = {name: one.value for name, one in scored.figures.items()} | {"exact": scored.exact}
        return Report(scored.sentences, metrics, [f"{name} {one.signature}" for name, one in scored.figures.items()])

    def predict(self, words: Sequence[str]) -> Prediction:
        text = clean(" ".join(words), "sentence") if words else first_source(self.translator.config)
        if not text:
            raise wrong("sentence", "nothing", "some words", "write the sentence in quotes")
        one = self.translator.translate([text], Search(), attention=True)[0]
        said = one.first
        values = {"source": text, "text": said.text, "tokens": said.tokens, "score": said.score}
        shown = None if said.weights is None else Map(said.weights.tolist(), one.source, said.tokens)
        return Prediction(said.text, values, lambda: drawn(said, one.source), shown)


def drawn(said: Said, source: Sequence[str]) -> Any:
    """The alignment as a figure."""
    from regard.draw.alignment import alignment

    if said.weights is None:
        raise unseen()
    return alignment(said.weights.cpu().numpy(), source, said.tokens)


def sets_of(
    config: TranslationConfig, data: str | None, split: Split, run: Path | None = None
) -> Mapping[str, Sequence[Pair]]:
    """The pairs to compare with, by the names of their sets. Those that a run cut off must still be the same."""
    if data:
        return sets_to_test(replace(config.data, text=data))
    text = open_text(config.data)
    if run is not None and isinstance(text, Corpus) and text.cut:
        check_held_out("pairs", fingerprint(text), run)
    return text.tests if split == "test" else {"validation": text.validation}


def first_source(config: TranslationConfig) -> str:
    """A sentence that was held out."""
    return next(iter(open_text(config.data).tests.values()))[0].source


def load(config: TranslationConfig, run: Path, weights: Path | None = None) -> TranslationPredictor:
    """The translator of a run folder, ready to be asked."""
    return TranslationPredictor(Translator.load(config, run, weights), run)
