"""Translation: from parallel text to a model that translates and shows where it looked."""

from regard.tasks.translation.config import TranslationConfig, changed, text_of
from regard.tasks.translation.configuring import DATA, configured
from regard.tasks.translation.predictor import load
from regard.tasks.translation.presets import PRESETS, preset
from regard.tasks.translation.task import Translation, goal_of, task
from regard.tasks.translation.translating import Said, Search, Translated, translate
from regard.tasks.translation.translator import Translator

DEFAULT = preset()

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "Said",
    "Search",
    "Translated",
    "Translation",
    "TranslationConfig",
    "Translator",
    "changed",
    "configured",
    "goal_of",
    "load",
    "preset",
    "task",
    "text_of",
    "translate",
]
