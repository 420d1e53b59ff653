"""Nadaraya–Watson regression: its points, its model, and how it is trained and measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.algebra.catalog import Sizes
from regard.algebra.masks import Full, Mask
from regard.compute.attend import AttentionResult
from regard.errors import wrong
from regard.tasks.data.columns import InputColumn
from regard.tasks.data.points import Points, evaluate_curve, load_diabetes_points, read_points, sample_curve
from regard.tasks.data.scale import Scale
from regard.tasks.mechanisms import build_catalog_mechanism
from regard.tasks.regression.config import RegressionData, RegressionModel
from regard.tasks.tensor_task import DataSplits, Tensors, TensorTask
from regard.training import Goal, Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPoints(DataSplits):
    """The points of a regression in units of about 1, the names of the inputs, and the scales of both sides."""

    names: tuple[str, ...]
    inputs: Scale
    values: Scale
    target: str = "y"
    columns: tuple[InputColumn, ...] = ()


class KernelRegression(nn.Module):
    r"""Predicts a new point as the average of the known ones, weighted by how near they are.

    $$ f(x) = \sum_i \mathrm{softmax}_i\left(-\tfrac{1}{2} \lVert (x - x_i) / h \rVert^2\right) y_i $$

    with $h$ = `bandwidth`, one or one for each input, and any score of the catalog for the Gaussian. Nadaraya 1964;
    Watson 1964. What is learned is $1 / h$ = `sharpness`, which becomes 0 for an input that does not matter.
    """

    inputs: Tensor
    values: Tensor

    def __init__(self, inputs: Tensor, values: Tensor, config: RegressionModel) -> None:
        super().__init__()
        size = inputs.shape[1]
        self.register_buffer("inputs", inputs)
        self.register_buffer("values", values)
        self.sharpness = nn.Parameter(torch.full((size if config.bandwidths == "each" else 1,), size**-0.5))
        self.mechanism = build_catalog_mechanism(
            config.score, Sizes(size, size, 1, keys=len(inputs)), config.normalizer
        )

    @property
    def bandwidth(self) -> Tensor:
        """The distance at which a known point counts for less; one, or one for each input."""
        return 1 / self.sharpness.detach().abs()

    def attend(self, new: Tensor, mask: Mask | None = None, sharpness: Tensor | None = None) -> AttentionResult:
        """Return the attention of new points over the known ones, with the learned sharpness or another."""
        sharpness = self.sharpness if sharpness is None else sharpness
        return self.mechanism.attend(
            new * sharpness, self.inputs * sharpness, self.values, mask=Full() if mask is None else mask
        )

    def attend_three_ways(self, new: Tensor) -> dict[str, AttentionResult]:
        """Return the three ways of the textbook: a plain average, the bandwidth of the start, the learned bandwidth."""
        fixed = torch.full_like(self.sharpness, self.inputs.shape[1] ** -0.5)
        ways = {"average": torch.zeros_like(fixed), "fixed": fixed, "learned": self.sharpness}
        return {name: self.attend(new, sharpness=own) for name, own in ways.items()}


class RegressionTask(TensorTask):
    """Learns the bandwidth."""

    goal = Goal("learned", "lower")

    @property
    def batch(self) -> int:
        """All points at once."""
        return len(self.load_training(0)[0])

    def model(self) -> KernelRegression:
        _, inputs, values = self.load_training(0)
        return KernelRegression(inputs, values, self.config.model)

    def loss(self, model: KernelRegression, batch: Tensors) -> Loss:
        """Return the error of each point from all others: if it saw itself, the best bandwidth would be 0."""
        own, inputs, values = batch
        others = Mask.keep(own[:, None] != torch.arange(len(model.values), device=own.device))
        error = (model.attend(inputs, others).output - values).square().sum()
        return Loss(error, len(own))

    @property
    def units(self) -> str:
        """What the figures are."""
        return f"average, fixed, learned: squared error of {self.sets.target}, the mean over the points"

    def digest_items(self, tensors: Tensors) -> list[str]:
        """Leave out the number of a point, which is not part of its content."""
        return super().digest_items(tensors[1:])

    def compute_sums(self, model: KernelRegression, batch: Tensors) -> Mapping[str, float]:
        """Return the squared errors of all three ways, in the units of the values."""
        _, inputs, values = batch
        factor = float(self.sets.values.spread) ** 2
        errors = {
            name: factor * float((attended.output - values).square().sum())
            for name, attended in model.attend_three_ways(inputs).items()
        }
        return {"items": float(len(values)), **errors}


def load_known_points(data: RegressionData) -> KnownPoints:
    """Return the points of this name, split into training, validation and test points."""
    if data.source == "curve":
        found = sample_curve(data.points, data.noise, data.seed)
        grid = np.linspace(0, 5, 101)[:, None]
        new = grid[::2], evaluate_curve(grid[::2, 0])
        plain = Scale(torch.zeros(1), torch.ones(1))
        checked = grid[1::2], evaluate_curve(grid[1::2, 0])
        return build_known_points(found, [(found.inputs, found.values), checked, new], (plain, plain))
    if data.source == "diabetes":
        return split_points(load_diabetes_points(), data)
    return split_points(read_points(Path(data.source), data.target, data.choice), data)


def split_points(found: Points, data: RegressionData) -> KnownPoints:
    """Hold out a share for the test and as much for validation; scale all so that the rest have a deviation of 1."""
    count = len(found.values)
    order = np.random.default_rng([data.seed, 3]).permutation(count)
    cut = max(1, round(data.held_out * count))
    if count - 2 * cut < 2:
        expected = f"at least 2 to learn from beside {2 * cut} that are held out"
        raise wrong("data", f"{count} points", expected, "add more, or lower data.held_out")
    test, validation, rest = order[:cut], order[cut : 2 * cut], order[2 * cut :]
    inputs = fit_scale(torch.from_numpy(found.inputs[rest]).float())
    values = fit_scale(torch.from_numpy(found.values[rest, None]).float())
    parts = [(found.inputs[part], found.values[part]) for part in (rest, validation, test)]
    return build_known_points(found, parts, (inputs, values))


def fit_scale(values: Tensor) -> Scale:
    """Return mean and deviation; a column that never changes is only shifted."""
    spread = values.std(0)
    return Scale(values.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread)))


def build_known_points(found: Points, parts: Sequence[Any], scales: tuple[Scale, Scale]) -> KnownPoints:
    """Return the inputs and values of training, validation and test as tensors in the units of these scales."""
    train, validation, test = (to_tensors(inputs, values, scales) for inputs, values in parts)
    own: dict[str, Any] = {"names": found.names, "target": found.target, "columns": found.columns, "notes": found.notes}
    return KnownPoints(lambda _: train, validation, {"test": test}, inputs=scales[0], values=scales[1], **own)


def to_tensors(inputs: Any, values: Any, scales: tuple[Scale, Scale]) -> Tensors:
    """Return arrays as tensors, numbered, in the units of these scales."""
    points, column = torch.from_numpy(inputs).float(), torch.from_numpy(values).float()[:, None]
    return torch.arange(len(column)), scales[0].normalize(points), scales[1].normalize(column)
