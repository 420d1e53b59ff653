"""A model that rewrites sequences, asked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.errors import wrong
from regard.tasks.inversion.config import RULES, InversionConfig
from regard.tasks.inversion.sequences import numbers_of, rewritten, sets_of, spelled, tensors
from regard.tasks.inversion.task import Inversion, said, task
from regard.tasks.predicting import Map, Prediction, Report, Split, nowhere, trained

EXAMPLE = 8  # letters


class InversionPredictor:
    """The model of a run."""

    def __init__(self, learned: Inversion, model: Any) -> None:
        self.task, self.model = learned, model

    def evaluate(self, data: str | None, split: Split) -> dict[str, Report]:
        """On the lengths that were trained, and on longer ones."""
        if data is not None and data not in RULES:
            raise wrong("data", data, f"one of {', '.join(RULES)}", "leave it out for the rule of the run")
        own = self.task.config.data
        sets = self.task.sets if data in (None, own.rule) else sets_of(replace(own, rule=data))
        return self.task.reports(self.model, sets.held_out(split))

    def predict(self, words: Sequence[str]) -> Prediction:
        data = self.task.config.data
        letters = "".join(words) or spelled(range(4, 4 + data.symbols))[:EXAMPLE]
        numbers = numbers_of(letters, data)
        source, lengths, *_ = tensors([numbers], data.rule)
        with torch.no_grad():
            one = said(self.model, source, lengths, attention=True)[0]
        answer, right = spelled(one.tokens), spelled(rewritten(numbers, data.rule))
        rows, columns = [*answer, "⏹"], [*letters, "⏹"]
        shown = None if one.weights is None else Map(one.weights.tolist(), columns, rows)
        text = f"{answer}, {'right' if answer == right else f'should be {right}'}"
        values = {"source": letters, "said": answer, "right": answer == right}
        return Prediction(text, values, lambda: drawn(shown), shown)


def drawn(shown: Map | None) -> Any:
    """The weights as a picture: a sequence that is inverted has them on the other diagonal."""
    if shown is None:
        raise nowhere("model", "its source", "bahdanau")
    return shown.drawn()


def load(config: InversionConfig, run: Path, weights: Path | None = None) -> InversionPredictor:
    """The model of a run folder."""
    learned = task(config, run)
    return InversionPredictor(learned, trained(learned.model, config.training, run, weights))
