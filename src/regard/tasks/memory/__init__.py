"""Questions about stories: several hops attend to an external memory of facts, and each updates the query."""

from regard.tasks.memory.config import PRESETS, MemoryConfig
from regard.tasks.memory.predictor import MemoryPredictor
from regard.tasks.memory.stories import generate_splits
from regard.tasks.memory.task import MemoryTask
from regard.tasks.tensor_task import TensorTaskDefinition


class MemoryDefinition(TensorTaskDefinition[MemoryConfig]):
    """Answer questions about generated stories."""

    config_type, task_type, predictor_type = MemoryConfig, MemoryTask, MemoryPredictor
    presets, load_splits = PRESETS, staticmethod(generate_splits)
    data_help = (
        "Stories are generated, with questions that need one, two or three of their facts; there is no DATA to name."
    )
    data_field = ""
    data_noun = "stories"
    run_name = "memory-{given}"


__all__ = ["MemoryDefinition"]
