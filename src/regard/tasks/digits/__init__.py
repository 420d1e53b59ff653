"""Reading digits: gated heads with a memory and pooling by learned queries, against the article's plain net."""

from regard.tasks.digits.config import PRESETS, DigitsConfig, DigitsData, configure_for_files
from regard.tasks.digits.predictor import DigitsPredictor
from regard.tasks.digits.task import DigitsTask, load_splits
from regard.tasks.tensor_task import TensorTaskDefinition


class DigitsDefinition(TensorTaskDefinition[DigitsConfig]):
    """Say which of ten classes a picture is of."""

    task_type, predictor_type = DigitsTask, DigitsPredictor
    presets, load_splits = PRESETS, staticmethod(load_splits)
    data_help = """DATA is digits (of scikit-learn), a folder with the four idx files of MNIST or Fashion-MNIST, gzipped
or not, or a folder with the folders 0 to 9, each with images of its digit."""
    data_field = "source"

    def build_preset(self, name: str, data: DigitsData) -> DigitsConfig:
        config = super().build_preset(name, data)
        return config if data.source == "digits" else configure_for_files(config)


__all__ = ["DigitsDefinition"]
