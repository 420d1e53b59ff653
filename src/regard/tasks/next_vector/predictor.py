"""Predictions of a trained model of the next vector."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from regard.errors import wrong
from regard.tasks.next_vector.task import load_splits
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction
from regard.tasks.tensor_task import TensorPredictor, parse_item_number

SHOWN = 24  # sequences in the picture


class NextVectorPredictor(TensorPredictor):
    """Predicts the last vector of a sequence."""

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        sets = self.task.sets
        if data is not None:
            sets = load_splits(replace(self.task.config.data, source=data))
            here, there = self.task.sets.validation[0].shape[2], sets.validation[0].shape[2]
            if here != there:
                raise wrong("data", f"vectors of {there} numbers", f"{here}, as in the run", "name data of that size")
        known = {} if sets.floor is None else {"noise floor": sets.floor}
        reports = self.task.evaluate_sets(self.model, sets.get_held_out(split))
        return {name: one._replace(metrics={**one.metrics, **known}) for name, one in reports.items()}

    def predict(self, words: Sequence[str]) -> Prediction:
        """Predict the last vector of a sequence of the test set, which is named by its number."""
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
        """Draw the weights of the last vector of several sequences: a row each, from the one that was asked for."""
        from regard.inspect.draw.alignment import draw_alignment

        vectors, right = (tensor[first : first + SHOWN] for tensor in next(iter(self.task.sets.tests.values())))
        with torch.no_grad():
            weights = self.model(vectors[:, :-1]).attended.weights.dense().squeeze(1)
        rows = [f"{first + row}" + (f" → {int(place)}" if place >= 0 else "") for row, place in enumerate(right)]
        columns = [str(place) for place in range(weights.shape[1])]
        return draw_alignment(weights.double().numpy(), columns, rows, "where the last vector looked")
