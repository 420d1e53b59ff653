"""Translation: from parallel text to a model that translates and shows where it looked."""

from regard.tasks.translation.arguments import DATA, configure
from regard.tasks.translation.config import TranslationConfig, apply_changes, configure_text
from regard.tasks.translation.predictor import load
from regard.tasks.translation.presets import PRESETS, build_preset
from regard.tasks.translation.task import TranslationTask, build_task, get_goal
from regard.tasks.translation.translations import (
    TranslationHypothesis,
    TranslationResult,
    TranslationSearchOptions,
    translate,
)
from regard.tasks.translation.translator import Translator

DEFAULT = build_preset()

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "TranslationConfig",
    "TranslationHypothesis",
    "TranslationResult",
    "TranslationSearchOptions",
    "TranslationTask",
    "Translator",
    "apply_changes",
    "build_preset",
    "build_task",
    "configure",
    "configure_text",
    "get_goal",
    "load",
    "translate",
]
