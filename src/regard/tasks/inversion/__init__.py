"""Sequences said backwards, again, or in order: the smallest thing that a sequence to sequence model can learn."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.configuration import apply_changes, choose_preset, resolve_data, set_run_folder
from regard.tasks.inversion.config import PRESETS, InversionConfig
from regard.tasks.inversion.predictor import load
from regard.tasks.inversion.task import build_task, get_goal

DEFAULT = InversionConfig()
DATA = "DATA is the rule: invert, copy or sort; sequences are generated."


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> InversionConfig:
    """The preset for this rule, with other values for some fields."""
    rule, values = resolve_data(DEFAULT, "data.rule", data, values)
    return apply_changes(set_run_folder(choose_preset(PRESETS, preset), rule, preset or ""), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "apply_changes", "build_task", "configure", "get_goal", "load"]
