"""Dot product and scaled dot product."""

import math

from regard.algebra.entries import list_as
from regard.algebra.scores.base import DotForm, DotScore, KeyGrowth
from regard.algebra.shapes import Keys, Queries, Scores


@list_as("dot", aliases="dot-product inner-product luong-dot 点积 内积")
class Dot(DotScore):
    r"""The inner product of query and key.

    $$ s_{ij} = q_i^\top k_j $$

    Luong et al. 2015, eq. 8 (*dot*).

    Lowers to: itself.

    >>> import torch
    >>> Dot()(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[11.,  2.]])
    """

    head_blind = True
    key_growth: KeyGrowth = "none"

    def forward(self, query: Queries, key: Keys) -> Scores:
        return query @ key.transpose(-1, -2)

    def dot_form(self, query: Queries, key: Keys) -> DotForm:
        return DotForm(query, key)


@list_as("scaled-dot", aliases="scaled-dot-product vaswani transformer 缩放点积 缩放点积注意力")
class ScaledDot(DotScore):
    r"""The inner product over the square root of the width, which keeps its variance at one.

    $$ s_{ij} = q_i^\top k_j / \sqrt{d} $$

    with $d$ = the width of query and key. Vaswani et al. 2017, eq. 1.

    Lowers to: itself; the factor is the kernel's own scale.

    >>> import torch
    >>> ScaledDot()(torch.ones(1, 4), torch.ones(2, 4))
    tensor([[2., 2.]])
    """

    head_blind = True
    key_growth: KeyGrowth = "none"

    def forward(self, query: Queries, key: Keys) -> Scores:
        return query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])

    def dot_form(self, query: Queries, key: Keys) -> DotForm:
        return DotForm(query, key, scale=1.0 / math.sqrt(query.shape[-1]))
