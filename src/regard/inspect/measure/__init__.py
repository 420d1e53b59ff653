"""Numbers that say what an attention does: how spread, how far, on whom, how alike, to what end."""

from regard.inspect.measure.alignments import Errors, Links, aligned, alignment_error, from_pharaoh
from regard.inspect.measure.heads import agreement, mean_distance, normalized_entropy, received_share
from regard.inspect.measure.patterns import PATTERNS, Labelled, pattern_scores, patterns
from regard.inspect.measure.rollouts import rollout

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
