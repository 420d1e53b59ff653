"""Questions about stories: an external memory of facts, read several times, each reading sharpening the question."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.errors import wrong
from regard.tasks.configuration import apply_changes, choose_preset, set_run_folder
from regard.tasks.memory.config import PRESETS, MemoryConfig
from regard.tasks.memory.predictor import load
from regard.tasks.memory.task import build_task, get_goal

DEFAULT = MemoryConfig()
DATA = "Stories are generated, with questions that need one, two or three of their facts; there is no DATA to name."


def configure(preset: str | None, data: Sequence[str], values: Mapping[str, Any]) -> MemoryConfig:
    """The preset, with other values for some fields."""
    if data:
        raise wrong("data", data[0], "none: stories are generated", "leave it out")
    return apply_changes(set_run_folder(choose_preset(PRESETS, preset), "memory", preset or ""), values)


__all__ = ["DATA", "DEFAULT", "PRESETS", "apply_changes", "build_task", "configure", "get_goal", "load"]
