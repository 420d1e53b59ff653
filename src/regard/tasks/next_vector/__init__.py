"""The next vector of a sequence in seven steps: embed, query and keys, score, softmax, weighted sum, linear, learn."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.naming import apply_changes, choose_preset, set_run_folder, resolve_data
from regard.tasks.next_vector.config import PRESETS, NextVectorConfig
from regard.tasks.next_vector.predictor import load
from regard.tasks.next_vector.task import get_goal, build_task

DEFAULT = NextVectorConfig()
DATA = "DATA is a rule (retrieval, rotation, linear), or a .npy or CSV file: a row for each moment, or whole sequences."


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> NextVectorConfig:
    """The preset for these sequences, with other values for some fields."""
    source, values = resolve_data(DEFAULT, "data.source", data, values)
    return apply_changes(set_run_folder(choose_preset(PRESETS, preset), "next-vector", source), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "apply_changes", "configure", "get_goal", "load", "build_task"]
