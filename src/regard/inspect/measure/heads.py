"""Measures of each head: entropy, distance, received weight, and how much two heads agree."""

import math

import torch

from regard.algebra.shapes import Float, Tensor
from regard.inspect.recording import AttentionMap
from regard.inspect.recording.attention_map import split_range

BLOCK_WEIGHTS = 2**20  # weights that are written out together


def normalized_entropy(attention: AttentionMap) -> Float[Tensor, " head"]:
    r"""Return the entropy of each head from 0 (one key) to 1 (all keys alike): the mean over queries of $H_i / \log n$.

    Queries without weights count as 0. With a single key it is always 0.

    >>> from regard.inspect.recording import DenseMap
    >>> normalized_entropy(DenseMap(torch.full((1, 2, 4), 0.25)))
    tensor([1.])
    """
    if attention.keys == 1:
        return attention.entropy().new_zeros(attention.heads)  # 0 / 0, and a rounded entropy is not exactly 0
    return attention.entropy().mean(-1) / math.log(attention.keys)


def received_share(attention: AttentionMap) -> Float[Tensor, "head key"]:
    """Return the share of all weight that each key gets: 1 / keys if all get the same, 0 if there is no weight.

    >>> from regard.inspect.recording import DenseMap
    >>> received_share(DenseMap(torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])))
    tensor([[0.7500, 0.2500]])
    """
    mass = attention.received_weight()
    return mass / mass.sum(-1, keepdim=True).clamp_min(torch.finfo(mass.dtype).tiny)


def mean_distance(attention: AttentionMap) -> Float[Tensor, " head"]:
    r"""Return how far each head attends: the mean over queries of $\sum_j w_{ij} |j - p_i|$, in positions.

    The last query has the position of the last key: $p_i = n - m + i$ for $m$ queries and $n$ keys. Needs weights or
    tiles.
    Vig & Belinkov 2019, §4.2.

    >>> from regard.inspect.recording import DenseMap
    >>> mean_distance(DenseMap(torch.eye(3)[None].roll(-1, 1)))  # to the next one, and from the last to the first
    tensor([1.3333])
    """
    column = torch.arange(attention.keys)
    distances = []
    for head in range(attention.heads):
        total = torch.zeros((), dtype=torch.float64)
        for rows in split_rows(attention):
            position = torch.arange(rows.start, rows.stop)[:, None] + (attention.keys - attention.queries)
            total += (attention.tile(head, rows) * (column - position).abs()).sum(dtype=torch.float64)
        distances.append(total / attention.queries)
    return torch.stack(distances).float()


def agreement(attention: AttentionMap) -> Float[Tensor, "head head"]:
    r"""Return how much two heads agree, from 0 (never on the same keys) to 1: the mean of $1 - \mathrm{JS}_2(w, w')$.

    $\mathrm{JS}_2$ is the Jensen-Shannon divergence in bits, of two rows of the same query. Clark et al. 2019, §6.
    Needs weights or tiles.

    >>> from regard.inspect.recording import DenseMap
    >>> one, other = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> agreement(DenseMap(torch.stack([one, other])))
    tensor([[1., 0.],
            [0., 1.]])
    """
    total = torch.zeros(attention.heads, attention.heads, dtype=torch.float64)
    for rows in split_rows(attention):
        tables = torch.stack([attention.tile(head, rows) for head in range(attention.heads)]).double()
        spread = torch.special.entr(tables).sum((-1, -2))
        for head in range(attention.heads):
            middle = torch.special.entr((tables + tables[head]) / 2).sum((-1, -2))
            total[head] += middle - (spread + spread[head]) / 2
    return (1 - total / (attention.queries * math.log(2))).clamp(0, 1).float()


def split_rows(attention: AttentionMap) -> list[slice]:
    """Return the queries in parts that may be written out, all heads of them."""
    return split_range(0, attention.queries, max(1, BLOCK_WEIGHTS // (attention.keys * attention.heads)))
