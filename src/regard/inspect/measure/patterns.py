"""What a head does with positions alone: looks at the one before, the next, the first, itself, or everywhere alike."""

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
    """The pattern of each head that most of its weight follows: `other` where none has `least` of it.

    >>> from regard.inspect.recording import DenseMap
    >>> find_patterns(DenseMap(torch.eye(5)[None]))
    [HeadPattern(label='diagonal', score=1.0)]
    """
    table = score_patterns(attention)
    scores, best = table.max(-1)
    found = zip(scores.tolist(), best.tolist(), strict=True)
    return [HeadPattern(PATTERNS[place] if score >= least else NO_PATTERN, score) for score, place in found]


def score_patterns(attention: AttentionMap) -> Float[Tensor, "head pattern"]:
    r"""How much each head follows each of `PATTERNS`, from 0 to 1.

    For `previous`, `next`, `first` and `diagonal`, the mean weight of $j = p_i - 1$, $p_i + 1$, $0$ and $p_i$ over the
    queries that have such a key, where $p_i$ is the place of the query: the last query sits on the last key. For
    `uniform`, 1 − the mean distance in variation $\tfrac12 \sum_j |w_{ij} - 1/n|$ over $1 - 1/n$, its most. Needs
    weights or tiles.

    >>> from regard.inspect.recording import DenseMap
    >>> score_patterns(DenseMap(torch.full((1, 4, 4), 0.25)))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500, 1.0000]])
    """
    return torch.stack([_score_head(attention, head) for head in range(attention.heads)])


def _score_head(attention: AttentionMap, head: int) -> Float[Tensor, " pattern"]:
    """The scores of one head."""
    sums, counts = torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    spread = torch.zeros((), dtype=torch.float64)
    for rows in split_rows(attention):
        table = attention.tile(head, rows).double()
        place = torch.arange(rows.start, rows.stop) + (attention.keys - attention.queries)
        for number, column in enumerate((place - 1, place + 1, torch.zeros_like(place), place)):
            there = (column >= 0) & (column < attention.keys)
            sums[number] += table[there].gather(-1, column[there, None]).sum()
            counts[number] += there.sum()
        spread += (table - 1 / attention.keys).abs().sum() / 2
    most = max(1 - 1 / attention.keys, torch.finfo(torch.float64).tiny)
    uniform = 1 - spread / attention.queries / most
    return torch.cat([sums / counts.clamp_min(1), uniform[None]]).float()
