"""Normalizers turn scores into weights, under a mask."""

from regard.algebra.normalizers.base import Normalizer, NormalizerForm
from regard.algebra.normalizers.local import LocalGaussian
from regard.algebra.normalizers.monotonic import ChunkwiseMonotonic, HardMonotonic, Monotonic, SequentialNormalizer
from regard.algebra.normalizers.simplex import Entmax, Entmax15, RowTotal, Sigmoid, Softmax, SoftmaxPlusOne, Sparsemax

__all__ = [
    "ChunkwiseMonotonic",
    "Entmax",
    "Entmax15",
    "HardMonotonic",
    "LocalGaussian",
    "Monotonic",
    "Normalizer",
    "NormalizerForm",
    "RowTotal",
    "SequentialNormalizer",
    "Sigmoid",
    "Softmax",
    "SoftmaxPlusOne",
    "Sparsemax",
]
