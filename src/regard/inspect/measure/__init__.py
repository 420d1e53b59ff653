"""Measures of attention: entropy, distance, received weight, agreement, patterns, alignments, rollout."""

from regard.inspect.measure.alignments import AlignmentScores, Links, alignment_error, extract_alignment, parse_pharaoh
from regard.inspect.measure.heads import agreement, mean_distance, normalized_entropy, received_share
from regard.inspect.measure.patterns import PATTERNS, HeadPattern, find_patterns, score_patterns
from regard.inspect.measure.profiles import profile_heads
from regard.inspect.measure.rollouts import rollout

__all__ = [
    "PATTERNS",
    "AlignmentScores",
    "HeadPattern",
    "Links",
    "agreement",
    "alignment_error",
    "extract_alignment",
    "find_patterns",
    "mean_distance",
    "normalized_entropy",
    "parse_pharaoh",
    "profile_heads",
    "received_share",
    "rollout",
    "score_patterns",
]
