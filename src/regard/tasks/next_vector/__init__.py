"""The next vector of a sequence in seven steps: embed, query and keys, score, softmax, weighted sum, linear, learn."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.configuration import apply_changes, choose_preset, resolve_data, set_run_folder
from regard.tasks.next_vector.config import PRESETS, NextVectorConfig
from regard.tasks.next_vector.predictor import load
from regard.tasks.next_vector.task import build_task, get_goal

DEFAULT = NextVectorConfig()
DATA = "DATA is a rule (retrieval, rotation, linear), or a .npy or CSV file: a row for each moment, or whole sequences."


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> NextVectorConfig:
    """The preset for these sequences, with other values for some fields."""
    source, values = resolve_data(DEFAULT, "data.source", data, values)
    return apply_changes(set_run_folder(choose_preset(PRESETS, preset), "next-vector", source), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "apply_changes", "build_task", "configure", "get_goal", "load"]
