"""Speech: listen, attend and spell, from sounds to a model that writes them down and shows where it listened."""

from regard.tasks.configuration import apply_changes
from regard.tasks.speech.config import SpeechConfig
from regard.tasks.speech.predictor import SpeechPredictor, load
from regard.tasks.speech.presets import DATA, SPELLERS, configure
from regard.tasks.speech.task import SpeechTask, build_task, get_goal

DEFAULT = configure(None, (), {})
PRESETS = SPELLERS

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "SpeechConfig",
    "SpeechPredictor",
    "SpeechTask",
    "apply_changes",
    "build_task",
    "configure",
    "get_goal",
    "load",
]
