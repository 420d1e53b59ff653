"""The next vector of a sequence in seven steps: embed, query and keys, score, softmax, weighted sum, linear, learn."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.naming import changed, chosen, in_folder, of_data
from regard.tasks.next_vector.config import PRESETS, NextVectorConfig
from regard.tasks.next_vector.predictor import load
from regard.tasks.next_vector.task import goal_of, task

DEFAULT = NextVectorConfig()
DATA = "DATA is a rule (retrieval, rotation, linear), or a .npy or CSV file: a row for each moment, or whole sequences."


def configured(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> NextVectorConfig:
    """The preset for these sequences, with other values for some fields."""
    source, values = of_data(DEFAULT, "data.source", data, values)
    return changed(in_folder(chosen(PRESETS, preset), "next-vector", source), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "changed", "configured", "goal_of", "load", "task"]
