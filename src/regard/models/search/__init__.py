"""Searches: they know of a decoder that it begins and advances, and that its states can be selected from."""

from regard.models.search.beams import Beam, beam, best_of, no_hypothesis
from regard.models.search.hypothesis import Hypothesis, Marks
from regard.models.search.scoring import Scoring
from regard.models.search.single import Sampling, greedy, sample
from regard.models.search.watching import ROOT, Branch, watch

__all__ = [
    "ROOT",
    "Beam",
    "Branch",
    "Hypothesis",
    "Marks",
    "Sampling",
    "Scoring",
    "beam",
    "best_of",
    "greedy",
    "no_hypothesis",
    "sample",
    "watch",
]
