"""Numbers that say what an attention does: how spread, how far, on whom, how alike, to what end."""

from regard.measure.alignments import Errors, Links, aligned, alignment_error, from_pharaoh
from regard.measure.heads import agreement, mean_distance, normalized_entropy, received_share
from regard.measure.patterns import PATTERNS, Labelled, pattern_scores, patterns
from regard.measure.rollouts import rollout

__all__ = [
    "PATTERNS",
    "Errors",
    "Labelled",
    "Links",
    "agreement",
    "aligned",
    "alignment_error",
    "from_pharaoh",
    "mean_distance",
    "normalized_entropy",
    "pattern_scores",
    "patterns",
    "received_share",
    "rollout",
]
