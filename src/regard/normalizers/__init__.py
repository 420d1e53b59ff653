"""Normalizers turn scores into weights, under a mask."""

from regard.normalizers.base import Normalizer, NormalizerForm
from regard.normalizers.local import LocalGaussian
from regard.normalizers.monotonic import ChunkwiseMonotonic, HardMonotonic, Monotonic, SequentialNormalizer
from regard.normalizers.simplex import Entmax, Entmax15, RowTotal, Sigmoid, Softmax, SoftmaxPlusOne, Sparsemax

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
