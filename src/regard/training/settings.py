"""The settings of a run: one frozen dataclass per concept, each field with its meaning and unit."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from regard.errors import wrong

ScheduleShape = Literal["inverse-square-root", "cosine", "constant"]
Parallel = Literal["none", "ddp", "fsdp"]


@dataclass(frozen=True, slots=True)
class Optimizer:
    """AdamW, and what happens to the gradient before it."""

    rate: float = 1e-3  # learning rate: the peak of the schedule
    decay: float = 0.01  # of matrices only: biases and gains are left alone
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    clip: float | None = 1.0  # largest norm of the gradient of the mean loss
    accumulate: int = 1  # batches in one step

    def __post_init__(self) -> None:
        check_positive_fields(self, "rate", "accumulate", "clip")
        check_not_negative("decay", self.decay)
        check_not_negative("epsilon", self.epsilon)
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise wrong(name, getattr(self, name), "a share from 0 to below 1", "use 0.9, or 0.98")


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the rate goes with the step: a straight warm-up, then `shape`."""

    shape: ScheduleShape = "inverse-square-root"
    warmup: int = 400  # steps
    floor: float = 0.0  # where the cosine ends, as a fraction of the peak

    def __post_init__(self) -> None:
        if self.warmup < 0:
            raise wrong("warmup", self.warmup, "a number of steps, 0 or more", "use 0 for no warm-up")
        if not 0 <= self.floor <= 1:
            raise wrong("floor", self.floor, "a share from 0 to 1", "use 0 to end at nothing")


@dataclass(frozen=True, slots=True)
class StopCriteria:
    """When to end: whatever comes first. One of `steps` and `epochs` must be set."""

    steps: int | None = None
    epochs: int | None = None
    least: int | None = None  # steps: few data are gone through more often than `epochs`; none: if a limit is named
    patience: int | None = None  # evaluations in a row without a better metric
    target: float | None = None  # a metric that is good enough
    minutes: float | None = None  # of one training or resumption; then everything is evaluated and saved

    def __post_init__(self) -> None:
        if self.steps is None and self.epochs is None:
            raise wrong("stop", "neither steps nor epochs", "one of them", "set stop.steps or stop.epochs")
        check_positive_fields(self, "steps", "epochs", "least", "patience", "minutes")


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often things happen, in steps or `minutes`. A checkpoint is always written after an evaluation."""

    log: int = 10
    evaluate: int | None = None  # none: at the end of each epoch
    save: int | None = None  # further checkpoints between evaluations
    minutes: float = 10.0  # and one when this much time has passed, so that little is ever lost

    def __post_init__(self) -> None:
        check_positive_fields(self, "log", "evaluate", "save", "minutes")


@dataclass(frozen=True, slots=True)
class Training:
    """Everything about a run that is not the task's own data and model."""

    folder: Path = Path("runs/latest")
    seed: int = 1
    device: str = "auto"  # cuda where there is one, else cpu
    threads: int = 0  # 0: as torch finds them
    parallel: Parallel = "none"
    keep: int = 3  # checkpoints whose weights are kept for averaging: the last so many and the best so many
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    stop: StopCriteria = field(default_factory=lambda: StopCriteria(epochs=10))
    every: Intervals = field(default_factory=Intervals)

    def __post_init__(self) -> None:
        check_positive("keep", self.keep)
        if self.threads < 0:
            raise wrong("threads", self.threads, "0 or more", "use 0 to let torch choose")
        if self.seed < 0:
            raise wrong("seed", self.seed, "0 or more", "use 1, say")


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


def check_positive(name: str, value: int | float) -> None:
    """Raise unless `value` is above zero."""
    if not value > 0:
        raise wrong(name, value, "a number above 0", f"give {name} a value of 1 or more")


def check_positive_fields(config: object, *names: str) -> None:
    """Raise unless each of these fields is None or above zero."""
    for name in names:
        if getattr(config, name) is not None:
            check_positive(name, getattr(config, name))


def check_not_negative(name: str, value: int | float) -> None:
    """Raise where `value` is below zero."""
    if not value >= 0:
        raise wrong(name, value, "0 or more", f"give {name} a value of 0 or more")
