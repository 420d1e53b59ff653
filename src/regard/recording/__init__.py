"""Attention that was looked at: kept whole or in part, labelled, saved, compared."""

from regard.recording.difference import Difference
from regard.recording.factored import Factored, Factors
from regard.recording.recording import Labels, Recording
from regard.recording.seen import Seen, Whole
from regard.recording.sketch import Overview, Sketch

__all__ = ["Difference", "Factored", "Factors", "Labels", "Overview", "Recording", "Seen", "Sketch", "Whole"]
