"""Predictions of a trained regression."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.compute.attend import AttentionResult
from regard.errors import find_nearest, wrong
from regard.inspect.draw.words import Language
from regard.tasks.data.columns import InputColumn, check_column, parse_column
from regard.tasks.data.csv_table import DECIMAL_MARKS, parse_number, read_table
from regard.tasks.data.held_out import is_same_source
from regard.tasks.data.points import read_points
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction
from regard.tasks.regression.task import KnownPoints, load_known_points, to_tensors
from regard.tasks.tensor_task import TensorPredictor, Tensors

GENERATED = ("curve", "diabetes")
TITLE = "attention over the known points, by their values, the nearest first"


class RegressionPredictor(TensorPredictor):
    """Predicts the value at a point from the known points."""

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        """Return mean squared errors of three ways: the average of all points, the fixed bandwidth, the learned one."""
        own, source = self.task.sets, self.task.config.data.source
        if data is None or is_same_source(data, source):
            sets = own.get_held_out(split)
        elif data in GENERATED:
            sets = self.convert(load_known_points(replace(self.task.config.data, source=data)), split)
        else:
            sets = {Path(data).name: self.load_file(Path(data))}
        bandwidth = ", ".join(f"{bandwidth:.3f}" for bandwidth in self.model.bandwidth.tolist())
        return self.task.evaluate_sets(self.model, sets, [self.task.units, f"bandwidth {bandwidth}"])

    def load_file(self, path: Path) -> Tensors:
        """Return all points of another file, none of which was trained on, in the units of this run."""
        own, data = self.task.sets, self.task.config.data
        found = read_points(path, own.target, replace(data, target=own.target).choice, own.columns)
        return to_tensors(found.inputs, found.values, (own.inputs, own.values))

    def convert(self, known: KnownPoints, split: HeldOutSplit) -> dict[str, Tensors]:
        """Return the held-out points of other data in the units of this run."""
        own = self.task.sets
        if known.names != own.names:
            expected = f"the inputs {', '.join(own.names)}"
            raise wrong("data", ", ".join(known.names), expected, "name a file with the same columns")
        converted: dict[str, Tensors] = {}
        for name, (number, inputs, values) in known.get_held_out(split).items():
            inputs = own.inputs.normalize(known.inputs.denormalize(inputs))
            converted[name] = number, inputs, own.values.normalize(known.values.denormalize(values))
        return converted

    def predict(self, words: Sequence[str]) -> Prediction:
        known = self.task.sets
        new = self.parse_inputs(words)
        with torch.no_grad():
            found = self.model.attend_three_ways(known.inputs.normalize(new))
        values = {name: float(known.values.denormalize(one.output[0])) for name, one in found.items()}
        text = f"{known.target}: " + "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        given = dict(zip(known.names, new[0].tolist(), strict=True))
        return Prediction(text, {"inputs": given, **values}, self.draw_fits, self.build_map(found))

    def build_map(self, found: Mapping[str, AttentionResult]) -> LabeledWeights:
        """Return the weights of all known points, by their values, the nearest by the learned bandwidth first."""
        tables = {name: one.weights.dense()[0] for name, one in found.items()}
        order = tables["learned"].argsort(descending=True)
        values = self.task.sets.values.denormalize(self.model.values)[order, 0]
        rows = [table[order].tolist() for table in tables.values()]
        return LabeledWeights(rows, [f"{value:.4g}" for value in values.tolist()], list(tables), TITLE)

    def parse_inputs(self, words: Sequence[str]) -> Tensor:
        """Return the inputs that were typed, or those of the first point that was held out."""
        known = self.task.sets
        if not words:
            first: Tensor = known.inputs.denormalize(next(iter(known.tests.values()))[1][:1])
            return first
        columns = known.columns or [InputColumn(name) for name in known.names]
        fields = list(words)
        if len(fields) != len(columns):  # 50,20 are two numbers, unless a comma is one's decimal mark
            fields = [field for word in words for field in word.replace(",", " ").split()]
        if len(fields) != len(columns):
            expected = f"{len(columns)} values: {', '.join(column.name for column in columns)}"
            raise wrong("item", " ".join(words), expected, "write them in this order")
        pairs = zip(columns, fields, strict=True)
        return torch.tensor([[number for column, field in pairs for number in parse_input(column, field)]])

    def read_items(self, path: Path) -> list[tuple[str, ...]]:
        """Return what is to be typed for each row of a CSV file; a missing value is an empty text."""
        table, fields = read_table(path), []
        for column in self.task.sets.columns or [InputColumn(name) for name in self.task.sets.names]:
            check_column(column.name, table)
            texts = table.get_column(column.name)
            if not column.choices:
                numbers = parse_column(column.name, texts, table).tolist()
                texts = ["" if isnan(number) else f"{number:.12g}" for number in numbers]
            fields.append(texts)
        return list(zip(*fields, strict=True))

    def draw_fits(self, title: str = "", language: Language = "en") -> Any:
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
        grid = to_array(scale.denormalize(place[order]))
        return draw_regression(points, grid, truth, fits, across, title, language=language)


def to_array(column: Tensor) -> Any:
    """Return the only column as a float64 array."""
    return column[:, 0].numpy().astype(np.float64)


def parse_input(column: InputColumn, field: str) -> list[float]:
    """Return what was typed for a column as numbers."""
    if column.choices:
        if field not in column.choices:
            fix = f"write {find_nearest(field, column.choices)}"
            raise wrong(column.name, field or "nothing", f"one of {', '.join(column.choices)}", fix)
        return [float(field == choice) for choice in column.choices]
    found = [number for mark in DECIMAL_MARKS if (number := parse_number(field, mark)) is not None]
    if not found:
        raise wrong(column.name, field or "nothing", "a number", "write a number")
    return found[:1]
