"""Measures of each head: how spread it looks, how far, at whom, and how alike two heads are."""

import math

import torch

from regard.algebra.shapes import Float, Tensor
from regard.inspect.recording import AttentionMap

BLOCK_WEIGHTS = 2**20  # weights that are written out together


def normalized_entropy(attention: AttentionMap) -> Float[Tensor, " head"]:
    r"""How spread each head looks, from 0 (one key) to 1 (all alike): the mean over queries of $H_i / \log n$.

    Queries that see nothing count as 0. One key is always 0.

    >>> from regard.inspect.recording import DenseMap
    >>> normalized_entropy(DenseMap(torch.full((1, 2, 4), 0.25)))
    tensor([1.])
    """
    if attention.keys == 1:
        return attention.entropy().new_zeros(attention.heads)  # 0 / 0, and what rounding leaves of an entropy is not 0
    return attention.entropy().mean(-1) / math.log(attention.keys)


def received_share(attention: AttentionMap) -> Float[Tensor, "head key"]:
    """The share of all weight that each key gets: 1 / keys where all get alike. Zeros where there is none.

    >>> from regard.inspect.recording import DenseMap
    >>> received_share(DenseMap(torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])))
    tensor([[0.7500, 0.2500]])
    """
    mass = attention.received_weight()
    return mass / mass.sum(-1, keepdim=True).clamp_min(torch.finfo(mass.dtype).tiny)


def mean_distance(attention: AttentionMap) -> Float[Tensor, " head"]:
    r"""How far each head looks: the mean over queries of $\sum_j w_{ij} |j - p_i|$, in positions.

    The last query sits on the last key: $p_i = n - m + i$ for $m$ queries and $n$ keys. Needs weights or tiles.
    Vig & Belinkov 2019, §4.2.

    >>> from regard.inspect.recording import DenseMap
    >>> mean_distance(DenseMap(torch.eye(3)[None].roll(-1, 1)))  # the next one, and the last looks at the first
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
    r"""How alike two heads look, from 0 (never at the same keys) to 1: the mean of $1 - \mathrm{JS}_2(w, w')$.

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
    """The queries in parts that may be written out, all heads of them."""
    size = max(1, BLOCK_WEIGHTS // (attention.keys * attention.heads))
    return [slice(start, min(attention.queries, start + size)) for start in range(0, attention.queries, size)]
