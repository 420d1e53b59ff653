"""Biases add to the scores what position alone decides.

What is imported here is public, and is listed in this order in the catalog.
"""
# ruff: noqa: I001

from typing import TYPE_CHECKING

from regard.algebra.biases.base import Bias as Bias
from regard.algebra.biases.alibi import ALiBi as ALiBi
from regard.algebra.biases.relative import Relative as Relative
from regard.algebra.biases.tables import Prior as Prior, Dense as Dense

if not TYPE_CHECKING:  # type checkers read the imports, and would not understand a list that is computed
    __all__ = [name for name, part in globals().items() if isinstance(part, type)]
