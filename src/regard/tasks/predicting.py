"""What was trained, ready to be asked: how good it is, what it says to one thing, and where it looks."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from torch import nn

from regard.errors import wrong
from regard.training import Training, restore, unpack
from regard.training.folder import how_to_go_on
from regard.training.runtime import chosen

WEIGHTS = "weights.safetensors"
Split = Literal["test", "validation"]


class Report(NamedTuple):
    """How good it is on one set: how many things there were, the metrics by name, and what else to say."""

    items: int
    metrics: Mapping[str, float]
    notes: Sequence[str] = ()


class Map(NamedTuple):
    """Weights with a name for each row and column, for a terminal."""

    weights: Sequence[Sequence[float]]
    columns: Sequence[str]
    rows: Sequence[str]


class Prediction(NamedTuple):
    """What it says to one thing.

    `text` is for people, `values` the same for JSON; `map` shows in a terminal where it looked, and `draw` makes a
    matplotlib figure of it when somebody wants one.
    """

    text: str
    values: Mapping[str, Any]
    draw: Callable[[], Any]
    map: Map | None = None


@runtime_checkable
class Predictor(Protocol):
    """What `load` gives back."""

    def evaluate(self, data: str | None, split: Split) -> Mapping[str, Report]:
        """A report for each held-out set: of other data where some is named, else of the run's own."""

    def predict(self, words: Sequence[str]) -> Prediction:
        """The answer to what was typed (a text, a file, a file and a question); to an example where nothing was."""


def trained(model: nn.Module, training: Training, run: Path, weights: Path | None) -> nn.Module:
    """A model of the right shape with the best weights of a run or others, on its device, ready to be asked."""
    file = weights_of(run, weights)
    restore(model, unpack(file), file)
    return model.to(chosen(training.device)).eval()


def weights_of(run: Path, weights: Path | None) -> Path:
    """The best weights of a run; or others, by their path or their name in the run folder, ending or not."""
    if weights is None:
        if not (run / WEIGHTS).is_file():
            raise wrong("run", f"{run}, which has no weights yet", "at least one checkpoint", how_to_go_on(run))
        return run / WEIGHTS
    for path in (weights, run / weights, run / f"{weights}.safetensors"):
        if path.is_file():
            return path
    there = ", ".join(sorted(path.stem for path in run.glob("*.safetensors"))) or "none"
    raise wrong("weights", f"no {weights}", f"a file, or one of those in {run}: {there}", "check the name")
