"""Predictions of a trained translator."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from regard.datasets.text import clean
from regard.errors import wrong
from regard.inspect.draw.words import Language, join_title, localize
from regard.tasks.data import SentencePair, open_text
from regard.tasks.data.dataset import select_held_out
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction
from regard.tasks.translation.attention import missing_attention_error
from regard.tasks.translation.config import TranslationConfig
from regard.tasks.translation.metrics import score_translations
from regard.tasks.translation.text import load_test_sets
from regard.tasks.translation.translations import (
    TranslationHypothesis,
    TranslationResult,
    TranslationSearchOptions,
)
from regard.tasks.translation.translator import Translator


class TranslationPredictor:
    """Evaluates a translator, and translates one sentence."""

    def __init__(self, translator: Translator, run: Path | None = None) -> None:
        self.translator, self.model, self.run = translator, translator.model, run

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        sets = load_sets(self.translator.config, data, split, self.run)
        return {name: self.evaluate_pairs(pairs) for name, pairs in sets.items()}

    def evaluate_pairs(self, pairs: Sequence[SentencePair]) -> EvaluationReport:
        """Return BLEU, chrF and exact matches, with sacrebleu's signatures."""
        results = self.translator.translate([pair.source for pair in pairs], TranslationSearchOptions())
        hypotheses = [result.best[0].text if result.best else "" for result in results]
        tokenizer = self.translator.config.measure.tokenizer
        scored = score_translations(hypotheses, [pair.target for pair in pairs], tokenizer)
        metrics = {name: score.value for name, score in scored.scores.items()} | {"exact": scored.exact}
        notes = [f"{name} {score.signature}" for name, score in scored.scores.items()]
        return EvaluationReport(scored.sentences, metrics, notes)

    def predict(self, words: Sequence[str]) -> Prediction:
        text = clean(" ".join(words), "sentence") if words else read_first_source(self.translator.config)
        if not text:
            raise wrong("sentence", "nothing", "some words", "write the sentence in quotes")
        result = self.translator.translate([text], TranslationSearchOptions(), attention=True)[0]
        best = result.first
        values = {"source": text, "text": best.text, "tokens": best.tokens, "score": best.score}
        weights = label_weights(self.translator, result)
        return Prediction(best.text, values, partial(draw_attention, best, result.source), weights)


def label_weights(translator: Translator, result: TranslationResult) -> LabeledWeights | None:
    """Return the weights of the best translation over its source, and which layer and heads they are of."""
    best, model = result.first, translator.config.model
    if best.weights is None:
        return None
    title = "attention of the decoder, one head"
    if model.decoder == "transformer":
        layers, heads = model.transformer.decoder_layers, model.transformer.heads
        title = f"cross-attention, last of {layers} layers, mean of {heads} heads"
    return LabeledWeights(best.weights.tolist(), result.source, best.tokens, title)


def draw_attention(
    translation: TranslationHypothesis, source: Sequence[str], title: str = "", language: Language = "en"
) -> Any:
    """Draw the alignment."""
    from regard.inspect.draw.alignment import draw_alignment

    if translation.weights is None:
        raise missing_attention_error()
    weights, names = translation.weights.cpu().numpy(), ("target", "source")
    return draw_alignment(weights, source, translation.tokens, title, names=names, language=language)


def describe_attention(translator: Translator, language: Language = "en") -> str:
    """Return which attention the weights of a translation are, for a title."""
    blocks = getattr(translator.model.decoder, "blocks", None)
    if blocks is None:
        return localize("decoder attention", language)
    layer = localize("cross-attention of layer {}", language).format(len(blocks) - 1)
    return join_title(layer, localize("mean of heads", language))


def load_sets(
    config: TranslationConfig, data: str | None, split: HeldOutSplit, run: Path | None = None
) -> Mapping[str, Sequence[SentencePair]]:
    """Return the pairs to evaluate on, by the names of their sets. Those that a run held out must still be the same."""
    if data:
        return load_test_sets(replace(config.data, text=data))
    return select_held_out(open_text(config.data), split, "pairs", run)


def read_first_source(config: TranslationConfig) -> str:
    """Return a sentence that was held out."""
    return next(iter(open_text(config.data).tests.values()))[0].source
