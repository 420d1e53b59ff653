"""Visual question answering: a question looks at the regions of an image, and one of the known answers is said."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.tasks.naming import changed, chosen, in_folder, of_data
from regard.tasks.vqa.config import PRESETS, VqaConfig
from regard.tasks.vqa.predictor import Oracle, load
from regard.tasks.vqa.task import Vqa, goal_of, task

DEFAULT = VqaConfig()
DATA = """QUESTIONS is easy-vqa (in its package), or a folder with train and test, each with images/0.png, 1.png, … and
questions.json, a list of [question, answer, image number]."""


def configured(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> VqaConfig:
    """The preset, with what was named as data and in other fields."""
    source, values = of_data(DEFAULT, "data.questions", data, values)
    base = chosen(PRESETS, preset)
    return changed(in_folder(base, "vqa", source, base.model.kind), values)


__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "Oracle",
    "Vqa",
    "VqaConfig",
    "changed",
    "configured",
    "goal_of",
    "load",
    "task",
]
