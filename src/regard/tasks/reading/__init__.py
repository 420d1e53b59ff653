"""Reading: attention flow between a passage and a question, from which an answer is pointed at."""

from regard.tasks.configuration import apply_changes
from regard.tasks.reading.config import ReadingConfig
from regard.tasks.reading.predictor import ReadingPredictor, load
from regard.tasks.reading.presets import DATA, READERS, configure
from regard.tasks.reading.task import ReadingTask, build_task, get_goal

DEFAULT = configure(None, (), {})
PRESETS = READERS

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "ReadingConfig",
    "ReadingPredictor",
    "ReadingTask",
    "apply_changes",
    "build_task",
    "configure",
    "get_goal",
    "load",
]
