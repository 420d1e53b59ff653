"""Reading: attention flow between a passage and a question, from which an answer is pointed at."""

from regard.tasks.naming import changed
from regard.tasks.reading.config import ReadingConfig
from regard.tasks.reading.predictor import ReadingPredictor, load
from regard.tasks.reading.presets import DATA, READERS, configured
from regard.tasks.reading.task import Reading, goal_of, task

DEFAULT = configured(None, (), {})
PRESETS = READERS

__all__ = [
    "DATA",
    "DEFAULT",
    "PRESETS",
    "Reading",
    "ReadingConfig",
    "ReadingPredictor",
    "changed",
    "configured",
    "goal_of",
    "load",
    "task",
]
