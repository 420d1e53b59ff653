"""Biases add to the scores what position alone decides."""

from regard.biases.alibi import ALiBi
from regard.biases.base import Bias
from regard.biases.relative import Relative
from regard.biases.tables import Dense, Prior

__all__ = ["ALiBi", "Bias", "Dense", "Prior", "Relative"]
