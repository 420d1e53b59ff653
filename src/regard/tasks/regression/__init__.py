"""Nadaraya–Watson regression: the average of known points, weighted by how near they are, with a learned bandwidth."""

from regard.tasks.regression.config import PRESETS, RegressionConfig
from regard.tasks.regression.predictor import RegressionPredictor
from regard.tasks.regression.task import RegressionTask, load_known_points
from regard.tasks.tensor_task import TensorTaskDefinition


class RegressionDefinition(TensorTaskDefinition[RegressionConfig]):
    """Learn a curve from points."""

    task_type, predictor_type = RegressionTask, RegressionPredictor
    presets, load_splits = PRESETS, staticmethod(load_known_points)
    data_help = """DATA is curve (the textbook's, noisy), diabetes (of scikit-learn), or a CSV file: any separator, with
decimal points or commas; text is used as categories, dates are left out."""
    data_field = "source"
    run_name = "regression-{data}"


__all__ = ["RegressionDefinition"]
