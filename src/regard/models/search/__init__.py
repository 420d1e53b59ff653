"""Searches: they know of a decoder that it begins and advances, and that its states can be selected from."""

from regard.models.search.beam import BeamOptions, beam_search, no_hypothesis, take_best
from regard.models.search.hypothesis import Hypothesis, SpecialTokens
from regard.models.search.sampling import SamplingOptions, greedy_search, sample
from regard.models.search.scorer import HypothesisScorer
from regard.models.search.search_tree import ROOT, Branch, iterate_search

__all__ = [
    "ROOT",
    "BeamOptions",
    "Branch",
    "Hypothesis",
    "HypothesisScorer",
    "SamplingOptions",
    "SpecialTokens",
    "beam_search",
    "greedy_search",
    "iterate_search",
    "no_hypothesis",
    "sample",
    "take_best",
]
