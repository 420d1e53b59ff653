"""Sequences said backwards, again, or in order: the smallest thing that a sequence to sequence model can learn."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.inversion.config import PRESETS, InversionConfig
from regard.tasks.inversion.predictor import load
from regard.tasks.inversion.task import goal_of, task
from regard.tasks.naming import changed, chosen, in_folder, of_data

DEFAULT = InversionConfig()
DATA = "DATA is the rule: invert, copy or sort; sequences are generated."


def configured(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> InversionConfig:
    """The preset for this rule, with other values for some fields."""
    rule, values = of_data(DEFAULT, "data.rule", data, values)
    return changed(in_folder(chosen(PRESETS, preset), rule, preset or ""), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "changed", "configured", "goal_of", "load", "task"]
