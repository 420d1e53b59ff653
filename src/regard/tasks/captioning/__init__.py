"""Captioning: from images to words, and where it looked for each of them (*Show, Attend and Tell*, Xu et al. 2015)."""

from regard.tasks.captioning.config import CaptioningConfig, for_scenes
from regard.tasks.captioning.configuring import DATA, PRESETS, configured
from regard.tasks.captioning.predictor import Captioner, load
from regard.tasks.captioning.task import Captioning, goal_of, task
from regard.tasks.naming import changed

DEFAULT = for_scenes()

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "Captioner",
    "Captioning",
    "CaptioningConfig",
    "changed",
    "configured",
    "goal_of",
    "load",
    "task",
]
