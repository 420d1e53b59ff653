"""Reading digits: gated heads with a memory and pooling by learned queries, against the article's plain net."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.digits.config import PRESETS, DigitsConfig, for_files
from regard.tasks.digits.predictor import load
from regard.tasks.digits.task import goal_of, task
from regard.tasks.naming import changed, chosen, in_folder, of_data

DEFAULT = DigitsConfig()
DATA = (
    "DATA is digits (of scikit-learn), or a folder with the four idx files of MNIST or Fashion-MNIST, gzipped or not."
)


def configured(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> DigitsConfig:
    """The preset for these pictures, with other values for some fields."""
    source, values = of_data(DEFAULT, "data.source", data, values)
    base = chosen(PRESETS, preset)
    base = base if source == "digits" else for_files(base)
    return changed(in_folder(base, source, base.model.kind), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "changed", "configured", "goal_of", "load", "task"]
