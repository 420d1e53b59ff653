"""Numbers that say what an attention does: how spread, how far, on whom, how alike, to what end."""

from regard.inspect.measure.alignments import AlignmentScores, Links, extract_alignment, alignment_error, parse_pharaoh
from regard.inspect.measure.heads import agreement, mean_distance, normalized_entropy, received_share
from regard.inspect.measure.patterns import PATTERNS, HeadPattern, score_patterns, find_patterns
from regard.inspect.measure.rollouts import rollout

__all__ = [
    "PATTERNS",
    "AlignmentScores",
    "HeadPattern",
    "Links",
    "agreement",
    "extract_alignment",
    "alignment_error",
    "parse_pharaoh",
    "mean_distance",
    "normalized_entropy",
    "score_patterns",
    "find_patterns",
    "received_share",
    "rollout",
]
