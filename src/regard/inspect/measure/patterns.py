"""Patterns of heads by position: the previous one, the next, the first, the same, or all positions alike."""

from typing import NamedTuple

import torch

from regard.algebra.shapes import Float, Tensor
from regard.inspect.measure.heads import split_rows
from regard.inspect.recording import AttentionMap

PATTERNS = ("previous", "next", "first", "diagonal", "uniform")
NO_PATTERN = "other"


class HeadPattern(NamedTuple):
    """The pattern of a head, and how much of its weight follows it."""

    label: str
    score: float


def find_patterns(attention: AttentionMap, *, least: float = 0.5) -> list[HeadPattern]:
    """Return the pattern that most of each head's weight follows; `other` if none has at least `least` of it.

    >>> from regard.inspect.recording import DenseMap
    >>> find_patterns(DenseMap(torch.eye(5)[None]))
    [HeadPattern(label='diagonal', score=1.0)]
    """
    table = score_patterns(attention)
    scores, best = table.max(-1)
    pairs = zip(scores.tolist(), best.tolist(), strict=True)
    return [HeadPattern(PATTERNS[index] if score >= least else NO_PATTERN, score) for score, index in pairs]


def score_patterns(attention: AttentionMap) -> Float[Tensor, "head pattern"]:
    r"""Return how much each head follows each of `PATTERNS`, from 0 to 1.

    For `previous`, `next`, `first` and `diagonal`, the mean weight of $j = p_i - 1$, $p_i + 1$, $0$ and $p_i$ over the
    queries that have such a key. $p_i$ is the position of the query; that of the last query is that of the last key.
    For `uniform`, 1 − the mean distance in variation $\tfrac12 \sum_j |w_{ij} - 1/n|$ over $1 - 1/n$, its maximum.
    Needs weights or tiles.

    >>> from regard.inspect.recording import DenseMap
    >>> score_patterns(DenseMap(torch.full((1, 4, 4), 0.25)))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500, 1.0000]])
    """
    return torch.stack([_score_head(attention, head) for head in range(attention.heads)])


def _score_head(attention: AttentionMap, head: int) -> Float[Tensor, " pattern"]:
    sums, counts = torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    variation = torch.zeros((), dtype=torch.float64)
    for rows in split_rows(attention):
        table = attention.tile(head, rows).double()
        position = torch.arange(rows.start, rows.stop) + (attention.keys - attention.queries)
        for number, column in enumerate((position - 1, position + 1, torch.zeros_like(position), position)):
            exists = (column >= 0) & (column < attention.keys)
            sums[number] += table[exists].gather(-1, column[exists, None]).sum()
            counts[number] += exists.sum()
        variation += (table - 1 / attention.keys).abs().sum() / 2
    most = max(1 - 1 / attention.keys, torch.finfo(torch.float64).tiny)
    uniform = 1 - variation / attention.queries / most
    return torch.cat([sums / counts.clamp_min(1), uniform[None]]).float()
