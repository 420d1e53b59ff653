"""Speech: listen, attend and spell, from sounds to a model that writes them down and shows where it listened."""

from regard.tasks.naming import apply_changes
from regard.tasks.speech.config import SpeechConfig
from regard.tasks.speech.predictor import SpeechPredictor, load
from regard.tasks.speech.presets import DATA, SPELLERS, configure
from regard.tasks.speech.task import SpeechTask, get_goal, build_task

DEFAULT = configure(None, (), {})
PRESETS = SPELLERS

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "SpeechTask",
    "SpeechConfig",
    "SpeechPredictor",
    "apply_changes",
    "configure",
    "get_goal",
    "load",
    "build_task",
]
