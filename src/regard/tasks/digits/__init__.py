"""Reading digits: gated heads with a memory and pooling by learned queries, against the article's plain net."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.configuration import apply_changes, choose_preset, resolve_data, set_run_folder
from regard.tasks.digits.config import PRESETS, DigitsConfig, configure_for_files
from regard.tasks.digits.predictor import load
from regard.tasks.digits.task import build_task, get_goal

DEFAULT = DigitsConfig()
DATA = (
    "DATA is digits (of scikit-learn), or a folder with the four idx files of MNIST or Fashion-MNIST, gzipped or not."
)


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> DigitsConfig:
    """The preset for these pictures, with other values for some fields."""
    source, values = resolve_data(DEFAULT, "data.source", data, values)
    base = choose_preset(PRESETS, preset)
    base = base if source == "digits" else configure_for_files(base)
    return apply_changes(set_run_folder(base, source, base.model.kind), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "apply_changes", "build_task", "configure", "get_goal", "load"]
