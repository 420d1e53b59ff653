"""Sequences said backwards, again, or in order: the smallest thing that a sequence-to-sequence model can learn."""

from regard.tasks.inversion.config import PRESETS, InversionConfig
from regard.tasks.inversion.predictor import InversionPredictor
from regard.tasks.inversion.sequences import generate_splits
from regard.tasks.inversion.task import InversionTask
from regard.tasks.tensor_task import DataSplits, TensorTaskDefinition


class InversionDefinition(TensorTaskDefinition[InversionConfig]):
    """Say a sequence in another order."""

    config_type, task_type, predictor_type = InversionConfig, InversionTask, InversionPredictor
    presets = PRESETS
    data_help = "DATA is the rule: invert, copy or sort; sequences are generated."
    data_field = "rule"
    run_name = "{data}-{given}"

    def open_data(self, config: InversionConfig) -> DataSplits:
        return generate_splits(config.data)


__all__ = ["InversionDefinition"]
