"""Predictions of a trained model of the next vector."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from regard.errors import wrong
from regard.inspect.draw.words import Language, join_title, localize
from regard.tasks.data.columns import ColumnChoice
from regard.tasks.data.held_out import is_same_source
from regard.tasks.data.sequences import RULES, cut_windows, read_series
from regard.tasks.next_vector.task import load_splits
from regard.tasks.prediction import EvaluationReport, HeldOutSplit, LabeledWeights, Prediction
from regard.tasks.tensor_task import TensorPredictor, Tensors, TensorTask, parse_item_number

SHOWN = 24  # sequences in the picture
SHOWN_ROWS = 60  # known rows before a forecast


class NextVectorPredictor(TensorPredictor):
    """Predicts the last vector of a sequence, and forecasts a series."""

    def __init__(self, task: TensorTask, model: Any, steps: int = 1) -> None:
        super().__init__(task, model)
        self.steps = steps

    def with_steps(self, steps: int) -> "NextVectorPredictor":
        """Return the same predictor with forecasts of so many steps."""
        if steps < 1:
            raise wrong("steps", steps, "1 or more", "write --steps 12, say")
        return NextVectorPredictor(self.task, self.model, steps)

    @property
    def choice(self) -> ColumnChoice:
        """The columns of a file that are used."""
        data = self.task.config.data
        return ColumnChoice(data.columns, data.without)

    def evaluate(self, data: str | None, split: HeldOutSplit) -> dict[str, EvaluationReport]:
        own, source = self.task.sets, self.task.config.data.source
        known = {} if own.floor is None else {"noise floor": own.floor}
        if data is None or is_same_source(data, source):
            sets = own.get_held_out(split)
        elif data in RULES:
            other = load_splits(replace(self.task.config.data, source=data))
            sets, known = other.get_held_out(split), {"noise floor": other.floor}
        else:
            sets = {Path(data).name: self.load_file(Path(data))}
        self.check_size(next(iter(sets.values()))[0].shape[2])
        notes = [self.task.units]
        if own.names:
            notes += [f"{name}: {self.describe_errors(items)}" for name, items in sets.items()]
        reports = self.task.evaluate_sets(self.model, sets, notes)
        return {name: one._replace(metrics={**one.metrics, **known}) for name, one in reports.items()}

    def check_size(self, size: int) -> None:
        """Raise if vectors are not of the size of those that were learned from."""
        own = self.task.sets.validation[0].shape[2]
        if size != own:
            raise wrong("data", f"vectors of {size} numbers", f"{own}, as in the run", "name data of that size")

    def load_file(self, path: Path) -> Tensors:
        """Return all sequences of another file, none of which was trained on, in the units of this run."""
        length, values = self.task.sets.validation[0].shape[1], read_series(path, self.choice).values
        if values.ndim == 2:
            self.check_length(len(values), length, path)
            values = cut_windows(values, length)
        self.check_size(values.shape[2])
        vectors = torch.from_numpy(self.task.sets.scale.normalize(values)).float()
        return vectors, torch.full((len(vectors),), -1)

    def check_length(self, rows: int, least: int, path: Path) -> None:
        """Raise if a series is too short."""
        if rows < least:
            raise wrong("data", f"{rows} rows in {path.name}", f"at least {least}, as the run looks at", "add rows")

    def describe_errors(self, items: Tensors) -> str:
        """Return the root of the mean squared error of each column, in the units of the file."""
        vectors, sets = items[0], self.task.sets
        with torch.no_grad():
            predicted = self.model(vectors[:, :-1]).vector
        roots = (predicted - vectors[:, -1]).square().mean(0).sqrt().double().numpy() * sets.scale.spread
        named = ", ".join(f"{name} {root:.4g}" for name, root in zip(sets.names, roots, strict=True))
        return f"in the units of the file, the root of the mean squared error is {named}"

    def forecast(self, path: Path) -> Prediction:
        """Continue the series of a file, step by step, in its own units: each step sees those before it."""
        sets, series = self.task.sets, read_series(path, self.choice)
        length = sets.validation[0].shape[1] - 1
        known = series.values
        if known.ndim != 2:
            raise wrong("item", f"an array of shape {known.shape} in {path.name}", "one series", "name a series")
        self.check_size(known.shape[1])
        self.check_length(len(known), length, path)
        rows = torch.from_numpy(sets.scale.normalize(known[-length:])).float()
        weights = torch.zeros(self.steps, length + self.steps - 1)
        for step in range(self.steps):
            with torch.no_grad():
                found = self.model(rows[None, -length:])
            weights[step, step : step + length] = found.attended.weights.dense()[0, 0]
            rows = torch.cat([rows, found.vector])
        values = sets.scale.denormalize(rows[length:].double().numpy())
        names = sets.names or series.names
        lines = [[f"+{step}", *(f"{value:.6g}" for value in row)] for step, row in enumerate(values, 1)]
        text = "\n".join("\t".join(line) for line in (["step", *names], *lines))
        shown = label_forecast(weights, first=len(known) - length)
        answer = {"series": str(path), "names": list(names), "forecast": values.tolist(), "weights": shown.weights}
        return Prediction(text, answer, partial(draw_series, known[-SHOWN_ROWS:], values, names), shown)

    def predict(self, words: Sequence[str]) -> Prediction:
        """Predict the last vector of a sequence of the test set, by its number, or forecast the series of a file."""
        if len(words) == 1 and not words[0].isdecimal():
            return self.forecast(Path(words[0]))
        vectors, right = next(iter(self.task.sets.tests.values()))
        number = parse_item_number(words, len(vectors))
        with torch.no_grad():
            found = self.model(vectors[number : number + 1, :-1])
        weights = found.attended.weights.dense()[0]
        predicted, wanted = found.vector[0], vectors[number, -1]
        error = float((predicted - wanted).square().mean())
        place = int(weights.argmax())
        text = f"sequence {number} of the test set: looked most at vector {place}, squared error {error:.4g}"
        values = {
            "sequence": number,
            "vector": predicted.tolist(),
            "is": wanted.tolist(),
            "weights": weights[0].tolist(),
        }
        columns = [str(place) for place in range(weights.shape[1])]
        shown = LabeledWeights(weights.tolist(), columns, ["next"], "attention of the next vector over those before it")
        draw = partial(self.draw_attention, number)
        return Prediction(text, values | {"right": int(right[number])}, draw, shown)

    def draw_attention(self, first: int, title: str = "", language: Language = "en") -> Any:
        """Draw the weights of the last vector of several sequences: a row each, from the one that was asked for."""
        from regard.inspect.draw.alignment import draw_alignment

        vectors, right = (tensor[first : first + SHOWN] for tensor in next(iter(self.task.sets.tests.values())))
        with torch.no_grad():
            weights = self.model(vectors[:, :-1]).attended.weights.dense().squeeze(1)
        rows = [f"{first + row}" + (f" → {int(place)}" if place >= 0 else "") for row, place in enumerate(right)]
        columns = [str(place) for place in range(weights.shape[1])]
        title = join_title(title, localize("where the last vector looked", language))
        names = ("sequence → right vector" if any("→" in row for row in rows) else "sequence"), "vector"
        return draw_alignment(weights.double().numpy(), columns, rows, title, names=names, language=language)


def label_forecast(weights: torch.Tensor, first: int) -> LabeledWeights:
    """Return the weights of each step of a forecast over the rows of the file, from row `first`, and the steps before.

    >>> label_forecast(torch.eye(2, 3), first=8).columns
    ['8', '9', '+1']
    """
    steps, columns = weights.shape
    known = [str(first + row) for row in range(columns - steps + 1)]
    rows = [f"+{step}" for step in range(1, steps + 1)]
    return LabeledWeights(
        weights.tolist(), [*known, *rows[:-1]], rows, "attention of each step over the rows before it"
    )


def draw_series(known: Any, forecast: Any, names: Sequence[str], title: str = "", language: Language = "en") -> Any:
    """Draw a series with its forecast."""
    from regard.inspect.draw.forecast import draw_forecast

    return draw_forecast(known, forecast, names, title, language=language)
