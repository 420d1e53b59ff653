"""Searches: they know of a decoder that it begins and advances, and that its states can be selected from."""

from regard.models.search.beams import BeamOptions, beam_search, take_best
from regard.models.search.hypothesis import Hypothesis, SpecialTokens
from regard.models.search.scoring import HypothesisScorer
from regard.models.search.single import SamplingOptions, greedy_search, sample
from regard.models.search.watching import ROOT, Branch, iterate_search

__all__ = [
    "ROOT",
    "BeamOptions",
    "Branch",
    "Hypothesis",
    "SpecialTokens",
    "SamplingOptions",
    "HypothesisScorer",
    "beam_search",
    "take_best",
    "greedy_search",
    "sample",
    "iterate_search",
]
