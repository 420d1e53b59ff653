"""Captioning: from images to words, and where it looked for each of them (*Show, Attend and Tell*, Xu et al. 2015)."""

from regard.tasks.captioning.config import CaptioningConfig, configure_for_scenes
from regard.tasks.captioning.configuring import DATA, PRESETS, configure
from regard.tasks.captioning.predictor import CaptioningPredictor, load
from regard.tasks.captioning.task import CaptioningTask, get_goal, build_task
from regard.tasks.naming import apply_changes

DEFAULT = configure_for_scenes()

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "CaptioningPredictor",
    "CaptioningTask",
    "CaptioningConfig",
    "apply_changes",
    "configure",
    "get_goal",
    "load",
    "build_task",
]
