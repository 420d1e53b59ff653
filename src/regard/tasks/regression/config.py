"""The configuration of a regression."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from regard.errors import wrong
from regard.tasks.data.columns import ColumnChoice
from regard.training import Intervals, Optimizer, Schedule, StopCriteria, Training
from regard.training.settings import check_not_negative


@dataclass(frozen=True, slots=True)
class RegressionData:
    """Where the points come from."""

    source: str = "curve"  # curve, diabetes, or a CSV file
    target: str = ""  # the column to predict; the last where none is named
    columns: tuple[str, ...] = ()  # of a file to predict from; none: all but the target
    without: tuple[str, ...] = ()  # columns of a file to leave out
    missing: Literal["drop", "mean"] = "drop"  # rows without a value; or the mean of the column is filled in
    points: int = 50  # of the curve
    noise: float = 0.5  # of the curve
    seed: int = 1  # of the curve, and of which points are held out
    held_out: float = 0.2  # of the points of a file, for the test, and as many again for validation

    def __post_init__(self) -> None:
        if self.points < 5:
            raise wrong("points", self.points, "at least 5", "use 50")
        if not 0 < self.held_out < 0.5:
            raise wrong("held_out", self.held_out, "a share between 0 and 0.5", "use 0.2")
        check_not_negative("noise", self.noise)
        check_not_negative("seed", self.seed)

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
