"""Nadaraya–Watson regression: the average of known points, weighted by how near they are, with a learned width."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.naming import changed, chosen, in_folder, of_data
from regard.tasks.regression.config import PRESETS, RegressionConfig
from regard.tasks.regression.predictor import load
from regard.tasks.regression.task import goal_of, task

DEFAULT = RegressionConfig()
DATA = "DATA is curve (the textbook's, noisy), diabetes (of scikit-learn), or a CSV file with a line of names."


def configured(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> RegressionConfig:
    """The preset, with what was named as data and in other fields."""
    source, values = of_data(DEFAULT, "data.source", data, values)
    return changed(in_folder(chosen(PRESETS, preset), "regression", source), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "changed", "configured", "goal_of", "load", "task"]
