"""The settings of a run: one frozen dataclass per concept, each field with its meaning and unit."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, Protocol, runtime_checkable

from regard.errors import wrong
from regard.models.ranges import CheckedConfig, Count, Natural, NotNegative, Positive, Range

ScheduleShape = Literal["inverse-square-root", "cosine", "constant"]
Parallel = Literal["none", "ddp", "fsdp"]
Momentum = Annotated[float, Range(lambda share: 0 <= share < 1, "a share from 0 to below 1", "use 0.9, or 0.98")]
Floor = Annotated[float, Range(lambda share: 0 <= share <= 1, "a share from 0 to 1", "use 0 to end at nothing")]


@dataclass(frozen=True, slots=True)
class Optimizer(CheckedConfig):
    """AdamW, and what happens to the gradient before it."""

    rate: Positive = 1e-3  # learning rate: the peak of the schedule
    decay: NotNegative = 0.01  # of matrices only: biases and gains are left alone
    beta1: Momentum = 0.9  # decay of the mean of gradients
    beta2: Momentum = 0.98  # decay of the mean of their squares
    epsilon: NotNegative = 1e-9  # added to the root of that mean
    clip: Positive | None = 1.0  # largest norm of the gradient of the mean loss
    accumulate: Count = 1  # batches in one step


@dataclass(frozen=True, slots=True)
class Schedule(CheckedConfig):
    """How the rate goes with the step: a straight warm-up, then `shape`."""

    shape: ScheduleShape = "inverse-square-root"
    warmup: Natural = 400  # steps
    fixed: bool = False  # whether a warm-up that is longer than the run stays so; true if it is named
    floor: Floor = 0.0  # where the cosine ends, as a fraction of the peak


@dataclass(frozen=True, slots=True)
class StopCriteria(CheckedConfig):
    """When to end: whatever comes first. One of `steps` and `epochs` must be set."""

    steps: Count | None = None  # at most
    epochs: Count | None = None  # at most
    least: Count | None = None  # steps: few data are gone through more often than `epochs`; none: if a limit is named
    patience: Count | None = None  # evaluations in a row without a better metric
    target: float | None = None  # a metric that is good enough
    minutes: Positive | None = None  # of one training or resumption; then everything is evaluated and saved

    def check(self) -> None:
        if self.steps is None and self.epochs is None:
            raise wrong("stop", "neither steps nor epochs", "one of them", "set stop.steps or stop.epochs")


@dataclass(frozen=True, slots=True)
class Intervals(CheckedConfig):
    """How often things happen, in steps or `minutes`. A checkpoint is always written after an evaluation."""

    log: Count = 10  # steps between two lines of metrics
    evaluate: Count | None = None  # none: at the end of each epoch
    save: Count | None = None  # further checkpoints between evaluations
    minutes: Positive = 10.0  # and one when this much time has passed, so that little is ever lost


@dataclass(frozen=True, slots=True)
class Training(CheckedConfig):
    """Everything about a run that is not the task's own data and model."""

    folder: Path = Path("runs/latest")  # the run folder
    seed: Natural = 1  # of weights, batches and dropout
    device: str = "auto"  # cuda if there is one, else cpu
    threads: Natural = 0  # 0: as torch finds them
    parallel: Parallel = "none"
    keep: Count = 3  # checkpoints whose weights are kept for averaging: the last so many and the best so many
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    stop: StopCriteria = field(default_factory=lambda: StopCriteria(epochs=10))
    every: Intervals = field(default_factory=Intervals)


def configure_cosine_training(
    rate: float,
    warmup: int,
    *,
    epochs: int,
    target: float | None = None,
    decay: float = 0.0,
    keep: int = 3,
    log: int = 10,
) -> Training:
    """Return a training of some epochs whose learning rate follows a cosine."""
    return Training(
        keep=keep,
        optimizer=Optimizer(rate=rate, decay=decay),
        schedule=Schedule("cosine", warmup=warmup),
        stop=StopCriteria(epochs=epochs, target=target),
        every=Intervals(log=log),
    )


def require_steps(training: Training, least: int) -> Training:
    """Return a training that takes at least so many steps, however few its data are."""
    return replace(training, stop=replace(training.stop, least=least))


@runtime_checkable
class RunConfig(Protocol):
    """Any frozen dataclass with a `training` part: a task adds its own data and model beside it."""

    @property
    def training(self) -> Training: ...
