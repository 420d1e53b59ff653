"""Recorded attention: kept as a whole or in part, labelled, saved, compared."""

from regard.inspect.recording.attention_map import AttentionMap, DenseMap
from regard.inspect.recording.difference import Difference
from regard.inspect.recording.explanation import CellExplanation
from regard.inspect.recording.factors import FactoredMap, Factors
from regard.inspect.recording.origin import Origin
from regard.inspect.recording.recording import Recording, TokenLabels
from regard.inspect.recording.sketch import PooledMap, Sketch

__all__ = [
    "AttentionMap",
    "CellExplanation",
    "DenseMap",
    "Difference",
    "FactoredMap",
    "Factors",
    "Origin",
    "PooledMap",
    "Recording",
    "Sketch",
    "TokenLabels",
]
