"""The events of a run. The command line prints them, the page streams them, tests assert on them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

StopReason = Literal["steps", "epochs", "patience", "target", "minutes", "interrupted"]


@dataclass(frozen=True, slots=True)
class Started:
    """The model is built or restored; `steps` is where the run will end unless it ends early."""

    folder: Path
    step: int
    epoch: int
    steps: int | None
    parameters: int
    processes: int


@dataclass(frozen=True, slots=True)
class Noted:
    """Something worth a line that stops nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class Stepped:
    """Since the last such event: the mean loss a token, the tokens, and the seconds spent on them."""

    step: int
    epoch: int
    loss: float
    tokens: int
    seconds: float
    rate: float
    norm: float  # of the gradient of the mean loss in the last step, before clipping

    @property
    def tokens_per_second(self) -> float:
        """The speed since the last such event."""
        return self.tokens / max(self.seconds, 1e-9)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The metrics on held-out data, and whether the metric of the goal is the best so far."""

    step: int
    epoch: int
    metrics: Mapping[str, float]
    best: bool


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint is on the disk, whole."""

    step: int
    path: Path


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over, or was interrupted; `go_on` says how to continue."""

    reason: StopReason
    step: int
    best: float | None
    folder: Path
    go_on: str


Event: TypeAlias = Started | Noted | Stepped | Evaluated | Saved | Finished


def event_to_json(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object, with its name first.

    >>> event_to_json(Saved(3, Path("runs/a/checkpoints/000000003")))
    {'event': 'saved', 'step': 3, 'path': 'runs/a/checkpoints/000000003'}
    """
    values = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(event).items()}
    return {"event": type(event).__name__.lower()} | values
