"""Normalizers turn scores into weights, under a mask.

What is imported here is public, and is listed in this order in the catalog.
"""
# ruff: noqa: I001

from typing import TYPE_CHECKING

from regard.algebra.normalizers.base import Normalizer as Normalizer
from regard.algebra.normalizers.simplex import Softmax as Softmax, SoftmaxPlusOne as SoftmaxPlusOne
from regard.algebra.normalizers.simplex import Sparsemax as Sparsemax, Entmax15 as Entmax15, Entmax as Entmax
from regard.algebra.normalizers.simplex import Sigmoid as Sigmoid, RowTotal as RowTotal
from regard.algebra.normalizers.local import LocalGaussian as LocalGaussian
from regard.algebra.normalizers.monotonic import SequentialNormalizer as SequentialNormalizer
from regard.algebra.normalizers.monotonic import Monotonic as Monotonic, HardMonotonic as HardMonotonic
from regard.algebra.normalizers.monotonic import ChunkwiseMonotonic as ChunkwiseMonotonic

if not TYPE_CHECKING:  # type checkers read the imports, and would not understand a list that is computed
    __all__ = [name for name, part in globals().items() if isinstance(part, type)]
