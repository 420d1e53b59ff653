"""Biases add to the scores what position alone decides."""

from regard.algebra.biases.alibi import ALiBi
from regard.algebra.biases.base import Bias
from regard.algebra.biases.relative import Relative
from regard.algebra.biases.tables import Dense, Prior

__all__ = ["ALiBi", "Bias", "Dense", "Prior", "Relative"]
