"""A predictor of the next vector, asked."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.errors import wrong
from regard.tasks.next_vector.config import NextVectorConfig
from regard.tasks.next_vector.task import NextVectorTask, build_sets, build_task
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction, load_model
from regard.tasks.tensor_task import parse_item_number

SHOWN = 24  # sequences in the picture


class NextVectorPredictor:
    """The model of a run."""

    def __init__(self, learned: NextVectorTask, model: Any) -> None:
        self.task, self.model = learned, model

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        sets, floor = self.task.sets, self.task.floor
        if data is not None:
            sets, floor = build_sets(replace(self.task.config.data, source=data))
            here, there = self.task.sets.validation[0].shape[2], sets.validation[0].shape[2]
            if here != there:
                raise wrong("data", f"vectors of {there} numbers", f"{here}, as in the run", "name data of that size")
        known = {} if floor is None else {"noise floor": floor}
        reports = self.task.evaluate_sets(self.model, sets.get_held_out(split))
        return {name: one._replace(metrics={**one.metrics, **known}) for name, one in reports.items()}

    def predict(self, words: Sequence[str]) -> Prediction:
        """A sequence of the test set by its number."""
        vectors, right = next(iter(self.task.sets.tests.values()))
        number = parse_item_number(words, len(vectors))
        with torch.no_grad():
            found = self.model(vectors[number : number + 1, :-1])
        weights = found.attended.weights.dense()[0]
        said, wanted = found.vector[0], vectors[number, -1]
        error = float((said - wanted).square().mean())
        place = int(weights.argmax())
        text = f"sequence {number} of the test set: looked most at vector {place}, squared error {error:.4g}"
        values = {"sequence": number, "vector": said.tolist(), "is": wanted.tolist(), "weights": weights[0].tolist()}
        columns = [str(place) for place in range(weights.shape[1])]
        shown = LabeledWeights(weights.tolist(), columns, ["next"])
        return Prediction(text, values | {"right": int(right[number])}, lambda: self.draw_attention(number), shown)

    def draw_attention(self, first: int) -> Any:
        """Where the last vector of several sequences looked: a row each, from the one that was asked for."""
        from regard.inspect.draw.alignment import draw_alignment

        vectors, right = (tensor[first : first + SHOWN] for tensor in next(iter(self.task.sets.tests.values())))
        with torch.no_grad():
            weights = self.model(vectors[:, :-1]).attended.weights.dense().squeeze(1)
        rows = [f"{first + row}" + (f" → {int(place)}" if place >= 0 else "") for row, place in enumerate(right)]
        columns = [str(place) for place in range(weights.shape[1])]
        return draw_alignment(weights.double().numpy(), columns, rows, "where the last vector looked")


def load(config: NextVectorConfig, run: Path, weights: Path | None = None) -> NextVectorPredictor:
    """The model of a run folder."""
    learned = build_task(config, run)
    return NextVectorPredictor(learned, load_model(learned.model, config.training, run, weights))
