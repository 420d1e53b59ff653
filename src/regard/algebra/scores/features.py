"""Feature maps for linear attention."""

from collections.abc import Callable

import torch
from torch import nn

from regard.algebra.entries import list_as
from regard.algebra.scores.base import DotForm, DotScore
from regard.algebra.shapes import Keys, Queries, Scores, Tensor


def elu_plus_one(x: Tensor) -> Tensor:
    r"""Return $\phi(x) = \mathrm{elu}(x) + 1$ (Katharopoulos et al. 2020, eq. 7)."""
    return nn.functional.elu(x) + 1


@list_as("features", aliases="linear elu katharopoulos kernel-features 线性 特征")
class FeatureDot(DotScore):
    r"""The inner product of positive features of query and key.

    $$ s_{ij} = \phi(q_i)^\top \phi(k_j) $$

    with $\phi$ = `map`. Divided by the row total this is linear attention (Katharopoulos et al. 2020, eq. 4).

    Lowers to: a dot product of features; with the row total, two products reassociated, linear in the length.

    >>> FeatureDot()(torch.zeros(1, 2), torch.zeros(3, 2))
    tensor([[2., 2., 2.]])
    """

    head_blind = True

    def __init__(self, map: Callable[[Tensor], Tensor] = elu_plus_one) -> None:
        super().__init__()
        self.map = map

    def forward(self, query: Queries, key: Keys) -> Scores:
        return torch.einsum("...id,...jd->...ij", self.map(query), self.map(key))

    def dot_form(self, query: Queries, key: Keys) -> DotForm:
        return DotForm(self.map(query), self.map(key))
