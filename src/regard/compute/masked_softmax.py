"""Softmax over the keys that are not padding, as a function of scores."""

from collections.abc import Sequence
from typing import Any

from regard.algebra.foreign_keywords import explain_call
from regard.algebra.masks import Full, Lengths, Mask
from regard.algebra.masks.lengths import as_counts
from regard.algebra.normalizers import Softmax
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Distribution, Integer, Scores, Tensor, check_floats

KeyCounts = Integer[Tensor, "..."] | Sequence[Any]


@explain_call
def masked_softmax(scores: Scores, lengths: KeyCounts | Mask | None = None) -> Distribution:
    """Return the softmax of scores, `(batch, queries, keys)`, over the first keys of each sequence.

    `lengths` has one number for each sequence, `(batch,)`, or one for each of its queries, `(batch, queries)`; scores
    may have an axis of heads behind the batch. A mask says the same of any other pairs. A length of 0 gives zeros.

    >>> masked_softmax(torch.zeros(2, 1, 3), torch.tensor([2, 0])).tolist()
    [[[0.5, 0.5, 0.0]], [[0.0, 0.0, 0.0]]]
    """
    check_floats("scores", scores)
    mask = Full() if lengths is None else lengths if isinstance(lengths, Mask) else _as_mask(lengths)
    lead = tuple(scores.shape[:-2])
    while not isinstance(lengths, Mask | None) and len(mask.lead) < len(lead) and mask.lead:
        mask = mask.add_head_axis()
    mask.check(lead, scores.shape[-2], scores.shape[-1])
    pairs = Pairs(scores.shape[-2], scores.shape[-1], device=scores.device)
    weights: Distribution = Softmax()(scores, None if type(mask) is Full else mask.allows(pairs), pairs)
    return weights


def _as_mask(lengths: KeyCounts) -> Mask:
    lengths = as_counts("lengths", lengths)
    return Lengths(lengths) if lengths.dim() < 2 else Lengths.per_query(lengths)
