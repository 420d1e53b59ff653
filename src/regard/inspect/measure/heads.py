"""Measures of each head: how spread it looks, how far, at whom, and how alike two heads are."""

import math

import torch

from regard.algebra.shapes import Float, Tensor
from regard.inspect.recording import Seen

ROWS = 2**20  # weights that are written out together


def normalized_entropy(seen: Seen) -> Float[Tensor, " head"]:
    r"""How spread each head looks, from 0 (one key) to 1 (all alike): the mean over queries of $H_i / \log n$.

    Queries that see nothing count as 0. One key is always 0.

    >>> from regard.inspect.recording import Whole
    >>> normalized_entropy(Whole(torch.full((1, 2, 4), 0.25)))
    tensor([1.])
    """
    if seen.keys == 1:
        return seen.entropy().new_zeros(seen.heads)  # 0 / 0, and what rounding leaves of an entropy is not 0
    return seen.entropy().mean(-1) / math.log(seen.keys)


def received_share(seen: Seen) -> Float[Tensor, "head key"]:
    """The share of all weight that each key gets: 1 / keys where all get alike. Zeros where there is none.

    >>> from regard.inspect.recording import Whole
    >>> received_share(Whole(torch.tensor([[[1.0, 0.0], [0.5, 0.5]]])))
    tensor([[0.7500, 0.2500]])
    """
    mass = seen.received()
    return mass / mass.sum(-1, keepdim=True).clamp_min(torch.finfo(mass.dtype).tiny)


def mean_distance(seen: Seen) -> Float[Tensor, " head"]:
    r"""How far each head looks: the mean over queries of $\sum_j w_{ij} |j - p_i|$, in positions.

    The last query sits on the last key: $p_i = n - m + i$ for $m$ queries and $n$ keys. Needs weights or tiles.
    Vig & Belinkov 2019, §4.2.

    >>> from regard.inspect.recording import Whole
    >>> mean_distance(Whole(torch.eye(3)[None].roll(-1, 1)))  # the next one, and the last looks at the first
    tensor([1.3333])
    """
    column = torch.arange(seen.keys)
    distances = []
    for head in range(seen.heads):
        total = torch.zeros((), dtype=torch.float64)
        for rows in blocks(seen):
            position = torch.arange(rows.start, rows.stop)[:, None] + (seen.keys - seen.queries)
            total += (seen.tile(head, rows) * (column - position).abs()).sum(dtype=torch.float64)
        distances.append(total / seen.queries)
    return torch.stack(distances).float()


def agreement(seen: Seen) -> Float[Tensor, "head head"]:
    r"""How alike two heads look, from 0 (never at the same keys) to 1: the mean of $1 - \mathrm{JS}_2(w, w')$.

    $\mathrm{JS}_2$ is the Jensen-Shannon divergence in bits, of two rows of the same query. Clark et al. 2019, §6.
    Needs weights or tiles.

    >>> from regard.inspect.recording import Whole
    >>> one, other = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    >>> agreement(Whole(torch.stack([one, other])))
    tensor([[1., 0.],
            [0., 1.]])
    """
    total = torch.zeros(seen.heads, seen.heads, dtype=torch.float64)
    for rows in blocks(seen):
        tables = torch.stack([seen.tile(head, rows) for head in range(seen.heads)]).double()
        spread = torch.special.entr(tables).sum((-1, -2))
        for head in range(seen.heads):
            middle = torch.special.entr((tables + tables[head]) / 2).sum((-1, -2))
            total[head] += middle - (spread + spread[head]) / 2
    return (1 - total / (seen.queries * math.log(2))).clamp(0, 1).float()


def blocks(seen: Seen) -> list[slice]:
    """The queries in parts that may be written out, all heads of them."""
    size = max(1, ROWS // (seen.keys * seen.heads))
    return [slice(start, min(seen.queries, start + size)) for start in range(0, seen.queries, size)]
