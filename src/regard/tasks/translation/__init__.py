"""Translation: from parallel text to a model that translates and shows where it looked."""

from regard.tasks.translation.config import TranslationConfig, apply_changes, configure_text
from regard.tasks.translation.configuring import DATA, configure
from regard.tasks.translation.predictor import load
from regard.tasks.translation.presets import PRESETS, build_preset
from regard.tasks.translation.task import TranslationTask, get_goal, build_task
from regard.tasks.translation.translating import TranslationHypothesis, TranslationSearchOptions, TranslationResult, translate
from regard.tasks.translation.translator import Translator

DEFAULT = build_preset()

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "TranslationHypothesis",
    "TranslationSearchOptions",
    "TranslationResult",
    "TranslationTask",
    "TranslationConfig",
    "Translator",
    "apply_changes",
    "configure",
    "get_goal",
    "load",
    "build_preset",
    "build_task",
    "configure_text",
    "translate",
]
