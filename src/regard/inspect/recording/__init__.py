"""Attention that was looked at: kept whole or in part, labelled, saved, compared."""

from regard.inspect.recording.difference import Difference
from regard.inspect.recording.factored import Factored, Factors
from regard.inspect.recording.recording import Labels, Recording
from regard.inspect.recording.seen import Seen, Whole
from regard.inspect.recording.sketch import Overview, Sketch

__all__ = ["Difference", "Factored", "Factors", "Labels", "Overview", "Recording", "Seen", "Sketch", "Whole"]
