"""Reading: attention flow between a passage and a question, from which an answer is pointed at."""

from regard.tasks.naming import apply_changes
from regard.tasks.reading.config import ReadingConfig
from regard.tasks.reading.predictor import ReadingPredictor, load
from regard.tasks.reading.presets import DATA, READERS, configure
from regard.tasks.reading.task import ReadingTask, get_goal, build_task

DEFAULT = configure(None, (), {})
PRESETS = READERS

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "ReadingTask",
    "ReadingConfig",
    "ReadingPredictor",
    "apply_changes",
    "configure",
    "get_goal",
    "load",
    "build_task",
]
