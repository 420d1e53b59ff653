"""Nadaraya–Watson regression as something that can be trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.algebra.catalog import Sizes
from regard.algebra.masks import Full, Mask
from regard.compute.attend import AttentionResult
from regard.errors import wrong
from regard.tasks.data.points import Points, evaluate_curve, load_diabetes_points, read_points, sample_curve
from regard.tasks.mechanisms import build_catalog_mechanism
from regard.tasks.regression.config import RegressionConfig, RegressionData, RegressionModel
from regard.tasks.tensor_task import DataSplits, Tensors, TensorTask, check_items
from regard.training import Goal, Loss


class Scale(NamedTuple):
    """What turns the units of a file into ones of about 1, and back."""

    center: Tensor
    spread: Tensor

    def normalize(self, values: Tensor) -> Tensor:
        return (values - self.center) / self.spread

    def denormalize(self, values: Tensor) -> Tensor:
        return values * self.spread + self.center


class KnownPoints(NamedTuple):
    """The points of a regression in its own units, and what they were called and measured in."""

    sets: DataSplits
    names: tuple[str, ...]
    inputs: Scale
    values: Scale


class KernelRegression(nn.Module):
    r"""A new point is the average of the known ones, weighted by how near they are.

    $$ f(x) = \sum_i \mathrm{softmax}_i\left(-\tfrac{1}{2} \lVert (x - x_i) w \rVert^2\right) y_i $$

    with $w$ = `width`, learned, and any score of the catalog for the Gaussian. Nadaraya 1964; Watson 1964.
    """

    inputs: Tensor
    values: Tensor

    def __init__(self, inputs: Tensor, values: Tensor, config: RegressionModel) -> None:
        super().__init__()
        size = inputs.shape[1]
        self.register_buffer("inputs", inputs)
        self.register_buffer("values", values)
        self.width = nn.Parameter(torch.full((size if config.widths == "each" else 1,), size**-0.5))
        self.mechanism = build_catalog_mechanism(
            config.score, Sizes(size, size, 1, keys=len(inputs)), config.normalizer
        )

    def attend(self, new: Tensor, mask: Mask | None = None, width: Tensor | None = None) -> AttentionResult:
        """The attention of new points over the known ones, with the learned width or another."""
        width = self.width if width is None else width
        return self.mechanism.attend(
            new * width, self.inputs * width, self.values, mask=Full() if mask is None else mask
        )

    def attend_three_ways(self, new: Tensor) -> dict[str, AttentionResult]:
        """The three ways of the textbook: all points alike, the width fixed where it started, the width learned."""
        fixed = torch.full_like(self.width, self.inputs.shape[1] ** -0.5)
        widths = {"average": torch.zeros_like(self.width), "fixed": fixed, "learned": self.width}
        return {name: self.attend(new, width=width) for name, width in widths.items()}


class RegressionTask(TensorTask):
    """Learns the width; what it is compared with needs no learning."""

    def __init__(self, config: RegressionConfig, known: KnownPoints) -> None:
        count = len(known.sets.load_training(0)[0])
        super().__init__(config, known.sets, get_goal(config), batch=count)
        self.known = known

    def model(self) -> KernelRegression:
        _, inputs, values = self.load_training(0)
        return KernelRegression(inputs, values, self.config.model)

    def loss(self, model: KernelRegression, batch: Tensors) -> Loss:
        """Each point from all others: with itself in sight, the best width would be infinite."""
        own, inputs, values = batch
        others = Mask.keep(own[:, None] != torch.arange(len(model.values), device=own.device))
        error = (model.attend(inputs, others).output - values).square().sum()
        return Loss(error, len(own))

    def digest_items(self, tensors: Tensors) -> list[str]:
        """The number of a point is no part of it."""
        return super().digest_items(tensors[1:])

    def compute_sums(self, model: KernelRegression, batch: Tensors) -> Mapping[str, float]:
        """Squared errors of all three, in the units of the values."""
        _, inputs, values = batch
        factor = float(self.known.values.spread) ** 2
        errors = {
            name: factor * float((attended.output - values).square().sum())
            for name, attended in model.attend_three_ways(inputs).items()
        }
        return {"items": float(len(values)), **errors}


def get_goal(_: Any) -> Goal:
    """The squared error of the learned width decides."""
    return Goal("learned", "lower")


def build_task(config: RegressionConfig, run: Path | None = None) -> RegressionTask:
    """The regression of a new run, or of one whose points must be the same."""
    known = load_known_points(config.data)
    check_items(known.sets, run)
    return RegressionTask(config, known)


def load_known_points(data: RegressionData) -> KnownPoints:
    """The points of this name, cut into those to learn from and those held out."""
    if data.source == "curve":
        found = sample_curve(data.points, data.noise, data.seed)
        grid = np.linspace(0, 5, 101)[:, None]
        new = grid[::2], evaluate_curve(grid[::2, 0])
        plain = Scale(torch.zeros(1), torch.ones(1))
        checked = grid[1::2], evaluate_curve(grid[1::2, 0])
        return build_known_points(found.names, (found.inputs, found.values), checked, new, (plain, plain))
    found = load_diabetes_points() if data.source == "diabetes" else read_points(Path(data.source), data.target)
    return split_points(found, data)


def split_points(found: Points, data: RegressionData) -> KnownPoints:
    """A share for the test, as much for validation, and units in which the rest have a spread of 1."""
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
    return build_known_points(found.names, parts[0], parts[1], parts[2], (inputs, values))


def fit_scale(values: Tensor) -> Scale:
    """Mean and deviation; a column that never changes is left as it is."""
    spread = values.std(0)
    return Scale(values.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread)))


def build_known_points(
    names: tuple[str, ...], training: Any, validation: Any, test: Any, scales: tuple[Scale, Scale]
) -> KnownPoints:
    """Arrays as tensors with their numbers, in the units of these scales."""

    def to_tensors(part: Any) -> Tensors:
        inputs, values = torch.from_numpy(part[0]).float(), torch.from_numpy(part[1]).float()[:, None]
        return torch.arange(len(values)), scales[0].normalize(inputs), scales[1].normalize(values)

    learned = to_tensors(training)
    return KnownPoints(
        DataSplits(lambda _: learned, to_tensors(validation), {"test": to_tensors(test)}), names, *scales
    )
