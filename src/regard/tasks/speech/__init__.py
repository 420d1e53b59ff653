"""Speech: listen, attend and spell, from sounds to a model that writes them down and shows where it listened."""

from regard.tasks.naming import changed
from regard.tasks.speech.config import SpeechConfig
from regard.tasks.speech.predictor import SpeechPredictor, load
from regard.tasks.speech.presets import DATA, SPELLERS, configured
from regard.tasks.speech.task import Speech, goal_of, task

DEFAULT = configured(None, (), {})
PRESETS = SPELLERS

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "Speech",
    "SpeechConfig",
    "SpeechPredictor",
    "changed",
    "configured",
    "goal_of",
    "load",
    "task",
]
