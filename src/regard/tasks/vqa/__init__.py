"""Visual question answering: a question looks at the regions of an image, and one of the known answers is said."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.configuration import apply_changes, choose_preset, resolve_data, set_run_folder
from regard.tasks.vqa.config import PRESETS, VqaConfig
from regard.tasks.vqa.predictor import VqaPredictor, load
from regard.tasks.vqa.task import VqaTask, build_task, get_goal

DEFAULT = VqaConfig()
DATA = """QUESTIONS is easy-vqa (in its package), or a folder with train and test, each with images/0.png, 1.png, … and
questions.json, a list of [question, answer, image number]."""


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> VqaConfig:
    """The preset, with what was named as data and in other fields."""
    source, values = resolve_data(DEFAULT, "data.questions", data, values)
    base = choose_preset(PRESETS, preset)
    return apply_changes(set_run_folder(base, "vqa", source, base.model.kind), values)


__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "VqaConfig",
    "VqaPredictor",
    "VqaTask",
    "apply_changes",
    "build_task",
    "configure",
    "get_goal",
    "load",
]
