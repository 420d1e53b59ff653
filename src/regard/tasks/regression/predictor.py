"""Predictions of a trained regression."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.compute.attend import AttentionResult
from regard.errors import wrong
from regard.tasks.data.points import is_number
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction
from regard.tasks.regression.task import KnownPoints, load_known_points
from regard.tasks.tensor_task import TensorPredictor, Tensors


class RegressionPredictor(TensorPredictor):
    """Predicts the value at a point from the known points."""

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        """Return mean squared errors of three ways: the average of all points, the fixed bandwidth, the learned one."""
        sets = self.task.sets if data is None else self.load_other(data)
        bandwidth = ", ".join(f"{bandwidth:.3f}" for bandwidth in self.model.bandwidth.tolist())
        return self.task.evaluate_sets(self.model, sets.get_held_out(split), [f"bandwidth {bandwidth}"])

    def load_other(self, data: str) -> KnownPoints:
        """Return the points of another file in the units of this run."""
        known = load_known_points(replace(self.task.config.data, source=data))
        if known.names != self.task.sets.names:
            expected = f"the inputs {', '.join(self.task.sets.names)}"
            raise wrong("data", f"{', '.join(known.names)} in {data}", expected, "name a file with the same columns")
        own = self.task.sets

        def convert(part: Tensors) -> Tensors:
            number, inputs, values = part
            return (
                number,
                own.inputs.normalize(known.inputs.denormalize(inputs)),
                own.values.normalize(known.values.denormalize(values)),
            )

        tests = {name: convert(part) for name, part in known.tests.items()}
        return replace(known, validation=convert(known.validation), tests=tests)

    def predict(self, words: Sequence[str]) -> Prediction:
        known = self.task.sets
        new = self.parse_inputs(words)
        with torch.no_grad():
            found = self.model.attend_three_ways(known.inputs.normalize(new))
        values = {name: float(known.values.denormalize(one.output[0])) for name, one in found.items()}
        text = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        given = dict(zip(known.names, new[0].tolist(), strict=True))
        return Prediction(text, {"inputs": given, **values}, self.draw_fits, self.build_map(found))

    def build_map(self, found: Mapping[str, AttentionResult]) -> LabeledWeights:
        """Return the weights of all known points, by their values, the nearest by the learned bandwidth first."""
        tables = {name: one.weights.dense()[0] for name, one in found.items()}
        order = tables["learned"].argsort(descending=True)
        values = self.task.sets.values.denormalize(self.model.values)[order, 0]
        rows = [table[order].tolist() for table in tables.values()]
        return LabeledWeights(rows, [f"{value:.4g}" for value in values.tolist()], list(tables))

    def parse_inputs(self, words: Sequence[str]) -> Tensor:
        """Return the inputs that were typed, or those of the first point that was held out."""
        known = self.task.sets
        if not words:
            first: Tensor = known.inputs.denormalize(next(iter(known.tests.values()))[1][:1])
            return first
        numbers = [word for part in words for word in part.replace(",", " ").split()]
        if len(numbers) != len(known.names) or not all(map(is_number, numbers)):
            expected = f"{len(known.names)} numbers: {', '.join(known.names)}"
            raise wrong("item", " ".join(words), expected, "write them in this order")
        return torch.tensor([[float(number) for number in numbers]])

    def draw_fits(self) -> Any:
        """Draw all fits, and the weights of each."""
        from regard.inspect.draw.regression import draw_regression

        known = self.task.sets
        _, inputs, values = next(iter(known.tests.values()))
        own_inputs, own_values = self.task.load_training(0)[1:]
        with torch.no_grad():
            found = self.model.attend_three_ways(inputs)
            place = inputs if len(known.names) == 1 else found["learned"].output
            own_place = own_inputs if len(known.names) == 1 else self.model.attend(own_inputs).output
        order = place[:, 0].argsort()
        scale = known.inputs if len(known.names) == 1 else known.values
        points = to_array(scale.denormalize(own_place)), to_array(known.values.denormalize(own_values))
        fits = {
            name: (
                to_array(known.values.denormalize(one.output[order])),
                one.weights.dense()[order].numpy().astype(np.float64),
            )
            for name, one in found.items()
        }
        truth = to_array(known.values.denormalize(values[order]))
        # Of many inputs none is the axis: points stand where the learned bandwidth puts them.
        across = known.names[0] if len(known.names) == 1 else "y, as the learned bandwidth has it"
        return draw_regression(points, to_array(scale.denormalize(place[order])), truth, fits, across)


def to_array(column: Tensor) -> Any:
    return column[:, 0].numpy().astype(np.float64)
