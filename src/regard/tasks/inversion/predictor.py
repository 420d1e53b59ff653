"""Predictions of a trained model that rewrites sequences."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from regard.errors import wrong
from regard.inspect.draw.words import Language
from regard.tasks.data.vocabulary import END, SPECIAL
from regard.tasks.inversion.config import RULES
from regard.tasks.inversion.sequences import (
    FIRST,
    apply_rule,
    decode_letters,
    encode_letters,
    generate_splits,
    to_tensors,
)
from regard.tasks.inversion.task import decode_greedily
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction, no_attention_error
from regard.tasks.tensor_task import TensorPredictor

EXAMPLE = 8  # letters
TITLE = "attention of the decoder over the sequence"


class InversionPredictor(TensorPredictor):
    """Rewrites sequences."""

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        """Evaluate on the lengths that were trained, and on longer ones."""
        if data is not None and data not in RULES:
            raise wrong("data", data, f"one of {', '.join(RULES)}", "leave it out for the rule of the run")
        own = self.task.config.data
        sets = self.task.sets if data in (None, own.rule) else generate_splits(replace(own, rule=data))
        return self.task.evaluate_sets(self.model, sets.get_held_out(split), [self.task.units])

    def predict(self, words: Sequence[str]) -> Prediction:
        data = self.task.config.data
        letters = "".join(words) or decode_letters(range(FIRST, FIRST + data.symbols))[:EXAMPLE]
        ids, device = encode_letters(letters, data), next(self.model.parameters()).device
        source, lengths, *_ = (tensor.to(device) for tensor in to_tensors([ids], data.rule))
        with torch.no_grad():
            one = decode_greedily(self.model, source, lengths, attention=True)[0]
        answer, right = decode_letters(one.tokens), decode_letters(apply_rule(ids, data.rule))
        rows, columns = [*answer, SPECIAL[END]], [*letters, SPECIAL[END]]
        shown = None if one.weights is None else LabeledWeights(one.weights.tolist(), columns, rows, TITLE)
        text = f"{answer}, {'right' if answer == right else f'should be {right}'}"
        values = {"source": letters, "output": answer, "right": answer == right}
        return Prediction(text, values, partial(draw_attention, shown), shown)


def draw_attention(shown: LabeledWeights | None, title: str = "", language: Language = "en") -> Any:
    """Draw the weights: an inverted sequence has them on the other diagonal."""
    if shown is None:
        raise no_attention_error("model", "its source", "bahdanau")
    return shown.draw(title, language, ("output", "input"))
