"""The next vector of a sequence in seven steps: embed, query and keys, score, softmax, weighted sum, linear, learn."""

from regard.tasks.next_vector.config import PRESETS, NextVectorConfig
from regard.tasks.next_vector.predictor import NextVectorPredictor
from regard.tasks.next_vector.task import NextVectorTask, load_splits
from regard.tasks.tensor_task import TensorTaskDefinition


class NextVectorDefinition(TensorTaskDefinition[NextVectorConfig]):
    """Predict the last vector of a sequence."""

    task_type, predictor_type = NextVectorTask, NextVectorPredictor
    presets, load_splits = PRESETS, staticmethod(load_splits)
    data_help = """DATA is a rule (retrieval, rotation, linear), or a .npy or CSV file: a row for each moment, or whole
sequences."""
    data_field = "source"
    run_name = "next-vector-{data}"


__all__ = ["NextVectorDefinition"]
