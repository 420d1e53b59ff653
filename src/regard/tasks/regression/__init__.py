"""Nadaraya–Watson regression: the average of known points, weighted by how near they are, with a learned width."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.configuration import apply_changes, choose_preset, resolve_data, set_run_folder
from regard.tasks.regression.config import PRESETS, RegressionConfig
from regard.tasks.regression.predictor import load
from regard.tasks.regression.task import build_task, get_goal

DEFAULT = RegressionConfig()
DATA = "DATA is curve (the textbook's, noisy), diabetes (of scikit-learn), or a CSV file with a line of names."


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> RegressionConfig:
    """The preset, with what was named as data and in other fields."""
    source, values = resolve_data(DEFAULT, "data.source", data, values)
    return apply_changes(set_run_folder(choose_preset(PRESETS, preset), "regression", source), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "apply_changes", "build_task", "configure", "get_goal", "load"]
