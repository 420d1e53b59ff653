"""Sequences reversed, repeated, or sorted: the smallest thing that a sequence-to-sequence model can learn."""

from regard.tasks.inversion.config import PRESETS, InversionConfig
from regard.tasks.inversion.predictor import InversionPredictor
from regard.tasks.inversion.sequences import generate_splits
from regard.tasks.inversion.task import InversionTask
from regard.tasks.tensor_task import TensorTaskDefinition


class InversionDefinition(TensorTaskDefinition[InversionConfig]):
    """Say a sequence in another order."""

    task_type, predictor_type = InversionTask, InversionPredictor
    presets, load_splits = PRESETS, staticmethod(generate_splits)
    data_help = "DATA is the rule: invert, copy or sort; sequences are generated."
    data_field = "rule"
    run_name = "{data}-{given}"


__all__ = ["InversionDefinition"]
