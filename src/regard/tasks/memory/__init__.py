"""Questions about stories: several hops attend to an external memory of facts, and each updates the query."""

from dataclasses import replace

from regard.tasks.memory.config import PRESETS, MemoryConfig, MemoryData
from regard.tasks.memory.predictor import MemoryPredictor
from regard.tasks.memory.question_kinds import generate_splits
from regard.tasks.memory.task import MemoryTask
from regard.tasks.tensor_task import TensorTaskDefinition


class MemoryDefinition(TensorTaskDefinition[MemoryConfig]):
    """Answer questions about generated stories."""

    task_type, predictor_type = MemoryTask, MemoryPredictor
    presets, load_splits = PRESETS, staticmethod(generate_splits)
    data_help = """Stories are generated, with questions that need one, two or three of their facts; there is no DATA to
name. --preset question-kinds: the twenty kinds of questions of Weston et al. 2015, in our own words."""
    data_field = ""
    data_noun = "stories"
    run_name = "memory-{given}"

    def build_preset(self, name: str, data: MemoryData) -> MemoryConfig:
        """Return the configuration that a preset has for these data; it also says which stories they are."""
        return super().build_preset(name, replace(data, source=self.presets[name].data.source))


__all__ = ["MemoryDefinition"]
