"""A translator asked as any other task is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.datasets.text import clean
from regard.errors import wrong
from regard.tasks.data import Corpus, SentencePair, compute_fingerprint, open_text
from regard.tasks.data.fingerprints import check_held_out
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction
from regard.tasks.translation.attention import missing_attention_error
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.metrics import score_translations
from regard.tasks.translation.text import load_test_sets
from regard.tasks.translation.translations import TranslationHypothesis, TranslationSearchOptions
from regard.tasks.translation.translator import Translator


class TranslationPredictor:
    """Says how good a translator is, and what it says to one sentence."""

    def __init__(self, translator: Translator, run: Path | None = None) -> None:
        self.translator, self.run = translator, run

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        sets = load_sets(self.translator.config, data, split, self.run)
        return {name: self.evaluate_pairs(pairs) for name, pairs in sets.items()}

    def evaluate_pairs(self, pairs: Sequence[SentencePair]) -> EvaluationReport:
        """BLEU, chrF and exact matches, with sacrebleu's signatures."""
        found = self.translator.translate([pair.source for pair in pairs], TranslationSearchOptions())
        said = [one.best[0].text if one.best else "" for one in found]
        tokenizer = self.translator.config.measure.tokenizer
        scored = score_translations(said, [pair.target for pair in pairs], tokenizer)
        metrics = {name: one.value for name, one in scored.scores.items()} | {"exact": scored.exact}
        return EvaluationReport(
            scored.sentences, metrics, [f"{name} {one.signature}" for name, one in scored.scores.items()]
        )

    def predict(self, words: Sequence[str]) -> Prediction:
        text = clean(" ".join(words), "sentence") if words else read_first_source(self.translator.config)
        if not text:
            raise wrong("sentence", "nothing", "some words", "write the sentence in quotes")
        one = self.translator.translate([text], TranslationSearchOptions(), attention=True)[0]
        said = one.first
        values = {"source": text, "text": said.text, "tokens": said.tokens, "score": said.score}
        shown = None if said.weights is None else LabeledWeights(said.weights.tolist(), one.source, said.tokens)
        return Prediction(said.text, values, lambda: draw_attention(said, one.source), shown)


def draw_attention(translation: TranslationHypothesis, source: Sequence[str]) -> Any:
    """The alignment as a figure."""
    from regard.inspect.draw.alignment import draw_alignment

    if translation.weights is None:
        raise missing_attention_error()
    return draw_alignment(translation.weights.cpu().numpy(), source, translation.tokens)


def load_sets(
    config: TranslationConfig, data: str | None, split: HeldOutSplit, run: Path | None = None
) -> Mapping[str, Sequence[SentencePair]]:
    """The pairs to compare with, by the names of their sets. Those that a run cut off must still be the same."""
    if data:
        return load_test_sets(replace(config.data, text=data))
    text = open_text(config.data)
    if run is not None and isinstance(text, Corpus) and text.cut:
        check_held_out("pairs", compute_fingerprint(text), run)
    return text.tests if split == "test" else {"validation": text.validation}


def read_first_source(config: TranslationConfig) -> str:
    """A sentence that was held out."""
    return next(iter(open_text(config.data).tests.values()))[0].source


def load(config: TranslationConfig, run: Path, weights: Path | None = None) -> TranslationPredictor:
    """The translator of a run folder, ready to be asked."""
    return TranslationPredictor(Translator.load(config, run, weights), run)
