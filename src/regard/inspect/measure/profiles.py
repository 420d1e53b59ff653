"""What is known of each head, by the names of the measures: for marks and orders of heads in a panel."""

from regard.errors import InputError
from regard.inspect.measure.heads import agreement, normalized_entropy
from regard.inspect.measure.patterns import PATTERNS, score_patterns
from regard.inspect.recording import AttentionMap, Difference

MOST_WEIGHTS = 2**22  # that are read while somebody waits for a panel
DIGITS = 3


def profile_heads(attention: AttentionMap) -> dict[str, list[float]]:
    """Return each pattern's score, the entropy and the agreement with the other heads, head by head.

    Empty if the weights are too many, were not all kept, or are differences; without agreement if there is one head.

    >>> from regard.inspect.recording import DenseMap
    >>> profile_heads(DenseMap(torch.eye(3)[None]))["diagonal"]
    [1.0]
    """
    heads, queries, keys = attention.shape
    if isinstance(attention, Difference) or heads * queries * keys > MOST_WEIGHTS:
        return {}
    try:
        scores = score_patterns(attention)
    except InputError:  # a sketch
        return {}
    measures = dict(zip(PATTERNS, scores.T, strict=True)) | {"entropy": normalized_entropy(attention)}
    if heads > 1 and heads * heads * queries * keys <= MOST_WEIGHTS:
        alike = agreement(attention)
        measures["agreement"] = (alike.sum(-1) - alike.diagonal()) / (heads - 1)
    return {name: [round(value, DIGITS) for value in row.nan_to_num().tolist()] for name, row in measures.items()}
