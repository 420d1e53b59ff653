"""Where a run stands: all that decides how it goes on, apart from weights and moments.

There is no generator state here. Each step seeds torch from (seed, step, rank), so dropout does not depend on
what ran before: not on a restart, nor on what a reader of the events does between two steps.
"""

import hashlib
import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from regard.training.task import Goal


@dataclass(frozen=True, slots=True)
class Window:
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
    best: float | None = None
    stale: int = 0  # evaluations since the best
    window: Window = field(default_factory=Window)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Progress":
        return cls(**values | {"window": Window(**values["window"])})


@dataclass(frozen=True, slots=True)
class Taken:
    """One step: what it used, what it cost, and what was asked for meanwhile."""

    batches: int
    loss: float
    tokens: int
    norm: float
    rate: float
    seconds: float
    stop: bool
    overdue: bool


def moved(progress: Progress, taken: Taken, epoch_length: int) -> Progress:
    """The progress after one more step; an epoch that is used up becomes the next one."""
    batch = progress.batch + taken.batches
    over = batch >= epoch_length
    window = progress.window
    return replace(
        progress,
        step=progress.step + 1,
        epoch=progress.epoch + over,
        batch=0 if over else batch,
        metric=None,
        window=Window(window.loss + taken.loss, window.tokens + taken.tokens, window.seconds + taken.seconds),
    )


def judged(progress: Progress, value: float, goal: Goal) -> Progress:
    """The progress after an evaluation."""
    if goal.improves(value, progress.best):
        return replace(progress, metric=value, best=value, stale=0)
    return replace(progress, metric=None if math.isnan(value) else value, stale=progress.stale + 1)


def reseed(seed: int, step: int, rank: int) -> None:
    """Makes what torch draws next a function of these three numbers."""
    mixed = hashlib.blake2b(f"{seed} {step} {rank}".encode(), digest_size=4).digest()
    torch.manual_seed(int.from_bytes(mixed))
