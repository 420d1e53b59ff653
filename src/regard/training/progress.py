"""The progress of a run: all that decides how it continues, apart from weights and moments.

There is no generator state here. Each step seeds torch from (seed, step, rank), so dropout does not depend on
what ran before: not on a restart, nor on what the caller does between two events.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any

import torch

from regard.errors import RegardError
from regard.training.task import Goal


class DivergedError(RegardError, ArithmeticError):
    """The loss or its gradient is no longer a number."""


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Sums since the last `Stepped` event."""

    loss: float = 0.0
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Steps taken, batches of the epoch used, and how the metric has fared."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    metric: float | None = None  # measured at this very step
    loss: float | None = None  # on held-out data, at this very step
    best: float | None = None
    best_loss: float | None = None  # of those with the best metric, the lowest
    stale: int = 0  # evaluations since the metric was better than ever
    evaluations: int = 0
    varied: bool = False  # whether the metric was not the same at all evaluations
    window: LogWindow = field(default_factory=LogWindow)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Progress":
        """Return the inverse. A field that older versions did not write has its default."""
        made = cls(**values | {"window": LogWindow(**values["window"])})
        numbers = (*astuple(made)[:-1], *astuple(made.window))
        if not all(value is None or isinstance(value, int | float) for value in numbers):
            raise TypeError("progress: got something that is not a number")
        return made


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step: what it used, what it cost, and what was asked for meanwhile."""

    batches: int
    loss: float
    tokens: int
    norm: float
    rate: float
    seconds: float
    stop: bool
    overdue: bool
    expired: bool = False  # whether the minutes of the run are over


def advance_progress(progress: Progress, taken: StepResult, epoch_length: int) -> Progress:
    """Return the progress after one more step; an epoch that is used up becomes the next one."""
    batch = progress.batch + taken.batches
    over = batch >= epoch_length
    window = progress.window
    return replace(
        progress,
        step=progress.step + 1,
        epoch=progress.epoch + over,
        batch=0 if over else batch,
        metric=None,
        loss=None,
        window=LogWindow(window.loss + taken.loss, window.tokens + taken.tokens, window.seconds + taken.seconds),
    )


def update_best(progress: Progress, metrics: Mapping[str, float], goal: Goal) -> tuple[Progress, bool]:
    """Return the progress after an evaluation, and whether these weights are the best so far.

    Of equal metrics the lower loss is better; if that is equal too, or missing, the later weights are.
    """
    value, loss = float(metrics[goal.metric]), float(metrics.get("loss", math.nan))
    known = None if math.isnan(loss) else loss
    improves = goal.improves(value, progress.best)
    lowest = progress.best_loss
    ties = value == progress.best and (lowest is None or loss <= lowest)
    new = replace(
        progress,
        metric=None if math.isnan(value) else value,
        loss=known,
        stale=0 if improves else progress.stale + 1,
        evaluations=progress.evaluations + 1,
        varied=progress.varied or (progress.best is not None and value != progress.best),
    )
    return (replace(new, best=value, best_loss=known), True) if improves or ties else (new, False)


def note_constant_metric(progress: Progress, goal: Goal) -> list[str]:
    """Return a note on a goal that was the same at every evaluation: it did not choose the best weights."""
    if progress.evaluations < 2 or progress.varied:
        return []
    value = "no number" if progress.best is None else f"{progress.best:.4g}"
    how = "the loss" if goal.metric != "loss" and progress.best_loss is not None else "the later step"
    chosen = "none is called best" if progress.best is None else f"{how} chose the best"
    same = f"{goal.metric} was {value} at all {progress.evaluations} evaluations"
    return [f"{same}: {chosen}; train longer, or choose another goal"]


def seed_generator(seed: int, step: int, rank: int) -> None:
    """Make what torch draws next a function of these three numbers."""
    mixed = hashlib.blake2b(f"{seed} {step} {rank}".encode(), digest_size=4).digest()
    torch.manual_seed(int.from_bytes(mixed))
