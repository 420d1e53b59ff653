"""A model that rewrites sequences, asked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.errors import wrong
from regard.tasks.inversion.config import RULES, InversionConfig
from regard.tasks.inversion.sequences import apply_rule, decode_letters, encode_letters, generate_splits, to_tensors
from regard.tasks.inversion.task import InversionTask, build_task, decode_greedily
from regard.tasks.prediction import (
    EvaluationReport,
    HeldOutSplit,
    LabeledWeights,
    Prediction,
    load_model,
    no_attention_error,
)

EXAMPLE = 8  # letters


class InversionPredictor:
    """The model of a run."""

    def __init__(self, learned: InversionTask, model: Any) -> None:
        self.task, self.model = learned, model

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        """On the lengths that were trained, and on longer ones."""
        if data is not None and data not in RULES:
            raise wrong("data", data, f"one of {', '.join(RULES)}", "leave it out for the rule of the run")
        own = self.task.config.data
        sets = self.task.sets if data in (None, own.rule) else generate_splits(replace(own, rule=data))
        return self.task.evaluate_sets(self.model, sets.get_held_out(split))

    def predict(self, words: Sequence[str]) -> Prediction:
        data = self.task.config.data
        letters = "".join(words) or decode_letters(range(4, 4 + data.symbols))[:EXAMPLE]
        numbers = encode_letters(letters, data)
        source, lengths, *_ = to_tensors([numbers], data.rule)
        with torch.no_grad():
            one = decode_greedily(self.model, source, lengths, attention=True)[0]
        answer, right = decode_letters(one.tokens), decode_letters(apply_rule(numbers, data.rule))
        rows, columns = [*answer, "⏹"], [*letters, "⏹"]
        shown = None if one.weights is None else LabeledWeights(one.weights.tolist(), columns, rows)
        text = f"{answer}, {'right' if answer == right else f'should be {right}'}"
        values = {"source": letters, "said": answer, "right": answer == right}
        return Prediction(text, values, lambda: draw_attention(shown), shown)


def draw_attention(shown: LabeledWeights | None) -> Any:
    """The weights as a picture: a sequence that is inverted has them on the other diagonal."""
    if shown is None:
        raise no_attention_error("model", "its source", "bahdanau")
    return shown.draw()


def load(config: InversionConfig, run: Path, weights: Path | None = None) -> InversionPredictor:
    """The model of a run folder."""
    learned = build_task(config, run)
    return InversionPredictor(learned, load_model(learned.model, config.training, run, weights))
