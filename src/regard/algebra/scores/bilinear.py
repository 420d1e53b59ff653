"""Luong's *general* score, full or of low rank."""

import torch
from torch import nn

from regard.algebra.entries import list_as
from regard.algebra.scores.base import DotForm, DotScore, KeyGrowth, check_widths
from regard.algebra.shapes import Queries, Scores, WideKeys
from regard.errors import wrong


@list_as(
    "bilinear",
    lambda s: Bilinear(s.query, s.key),
    write="Bilinear({query}, {key})",
    aliases="general luong luong-general multiplicative 双线性 乘性",
)
@list_as(
    "low-rank",
    lambda s: Bilinear(s.query, s.key, rank=max(1, min(s.query, s.key) // 2)),
    write="Bilinear({query}, {key}, rank=8)",
    aliases="低秩",
)
class Bilinear(DotScore):
    r"""An inner product through a learned matrix.

    $$ s_{ij} = q_i^\top W k_j, \qquad W = A B^\top \text{ if a rank is given} $$

    with $W$ = `weight` (query width × key width), $A$ = `left`, $B$ = `right`; a key is as wide as a query
    unless its width is given. Luong et al. 2015, eq. 8 (*general*).

    Lowers to: a dot product with $q' = W^\top q$; of low rank with $q' = A^\top q$, $k' = B^\top k$.

    >>> score = Bilinear(2, 3)
    >>> score(torch.ones(1, 2), torch.ones(4, 3)).shape
    torch.Size([1, 4])
    """

    head_blind = True
    key_growth: KeyGrowth = "linear"

    def __init__(self, query: int, key: int | None = None, *, rank: int | None = None) -> None:
        super().__init__()
        key = query if key is None else key
        if rank is not None and not 1 <= rank <= min(query, key):
            raise wrong("rank", rank, f"1 … {min(query, key)}", "use a rank below both widths, or none")
        self.rank = rank
        if rank is None:
            self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(query, key)))
        else:
            self.left = nn.Parameter(nn.init.xavier_uniform_(torch.empty(query, rank)))
            self.right = nn.Parameter(nn.init.xavier_uniform_(torch.empty(key, rank)))

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        matrix = self.weight if self.rank is None else self.left @ self.right.T
        return torch.einsum("...id,de,...je->...ij", query, matrix, key)

    def dot_form(self, query: Queries, key: WideKeys) -> DotForm:
        if self.rank is None:
            return DotForm(query @ self.weight, key)
        return DotForm(query @ self.left, key @ self.right)

    def check(self, query: Queries, key: WideKeys) -> None:
        first, second = self.weight.shape if self.rank is None else (self.left.shape[0], self.right.shape[0])
        check_widths(query, key, (first, second), f"build Bilinear({query.shape[-1]}, {key.shape[-1]})")
