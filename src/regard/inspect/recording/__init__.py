"""Attention that was looked at: kept whole or in part, labelled, saved, compared."""

from regard.inspect.recording.difference import Difference
from regard.inspect.recording.factored import FactoredMap, Factors
from regard.inspect.recording.recording import TokenLabels, Recording
from regard.inspect.recording.seen import AttentionMap, DenseMap
from regard.inspect.recording.sketch import PooledMap, Sketch

__all__ = ["Difference", "FactoredMap", "Factors", "TokenLabels", "PooledMap", "Recording", "AttentionMap", "Sketch", "DenseMap"]
