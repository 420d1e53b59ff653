"""The configuration of a regression."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from regard.errors import wrong
from regard.models.ranges import CheckedConfig, Natural, NotNegative, at_least
from regard.tasks.data.columns import ColumnChoice
from regard.training import Intervals, Optimizer, Schedule, StopCriteria, Training


@dataclass(frozen=True, slots=True)
class RegressionData(CheckedConfig):
    """Where the points come from."""

    source: str = "curve"  # curve, diabetes, or a CSV file
    target: str = ""  # the column to predict; the last if none is named
    columns: tuple[str, ...] = ()  # of a file to predict from; none: all but the target
    without: tuple[str, ...] = ()  # columns of a file to leave out
    missing: Literal["drop", "mean"] = "drop"  # rows without a value; or the mean of the column is filled in
    points: Annotated[int, at_least(5, fix="use 50")] = 50  # of the curve
    noise: NotNegative = 0.5  # of the curve
    seed: Natural = 1  # of the curve, and of which points are held out
    held_out: float = 0.2  # of the points of a file, for the test, and as many again for validation

    def check(self) -> None:
        if not 0 < self.held_out < 0.5:
            raise wrong("held_out", self.held_out, "a share between 0 and 0.5", "use 0.2")

    @property
    def choice(self) -> ColumnChoice:
        """The columns of a file that are used."""
        only = (*self.columns, self.target) if self.columns and self.target else self.columns
        return ColumnChoice(only, self.without, self.missing)


@dataclass(frozen=True, slots=True)
class RegressionModel:
    """How a new point looks at the known ones."""

    score: str = "gaussian"  # a name of the catalog
    normalizer: str = "softmax"  # a name of the catalog
    bandwidths: Literal["one", "each"] = "one"  # one bandwidth for all inputs, or one for each


@dataclass(frozen=True, slots=True)
class RegressionConfig:
    """The configuration of a regression."""

    task: Literal["regression"] = "regression"
    data: RegressionData = field(default_factory=RegressionData)
    model: RegressionModel = field(default_factory=RegressionModel)
    training: Training = field(
        default_factory=lambda: Training(
            folder=Path("runs/regression"),
            keep=1,
            optimizer=Optimizer(rate=0.05, decay=0.0, clip=None),
            schedule=Schedule("cosine", warmup=0),
            stop=StopCriteria(steps=200),
            every=Intervals(log=20, evaluate=50),
        )
    )


PRESETS = {
    "one-bandwidth": RegressionConfig(),
    "many-bandwidths": RegressionConfig(model=RegressionModel(bandwidths="each")),
}
