"""Captioning: from images to words, and where it looked for each of them (*Show, Attend and Tell*, Xu et al. 2015)."""

from regard.tasks.captioning.config import CaptioningConfig, configure_for_scenes
from regard.tasks.captioning.predictor import CaptioningPredictor, load
from regard.tasks.captioning.presets import DATA, PRESETS, configure
from regard.tasks.captioning.task import CaptioningTask, build_task, get_goal
from regard.tasks.configuration import apply_changes

DEFAULT = configure_for_scenes()

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "CaptioningConfig",
    "CaptioningPredictor",
    "CaptioningTask",
    "apply_changes",
    "build_task",
    "configure",
    "get_goal",
    "load",
]
