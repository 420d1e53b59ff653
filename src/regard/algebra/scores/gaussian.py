"""The Gaussian kernel of Nadaraya–Watson regression."""

import torch

from regard.algebra.entries import list_as, list_learned
from regard.algebra.scores.base import DotForm, DotScore, KernelScore, drop_last_axis
from regard.algebra.shapes import Keys, Queries, Scores
from regard.algebra.terms import broadcast_per_head
from regard.compute.kernels.distance import compute_distances


@list_as("gaussian", aliases="rbf kernel nadaraya-watson 高斯 高斯核 核回归")
@list_learned("learned-gaussian", aliases="可学习高斯核")
class Gaussian(KernelScore, DotScore):
    r"""How close the query is to the key.

    $$ s_{ij} = -\frac{\lVert q_i - k_j \rVert^2}{2 h^2} $$

    with $h$ = `bandwidth`, fixed or learned, one or one for each head. With softmax this is Nadaraya–Watson regression
    (Nadaraya 1964; Watson 1964); textbooks that learn a factor $w$ of the distance have $w = 1 / h$.

    Lowers to: a dot product with one more coordinate, around the center of the keys; in float64 if float32 would lose
    digits, and difference by difference if float64 would.

    >>> Gaussian(bandwidth=1.0)(torch.eye(2), torch.eye(2))
    tensor([[-0., -1.],
            [-1., -0.]])
    """

    @property
    def centers_keys(self) -> bool:
        return True

    def forward(self, query: Queries, key: Keys) -> Scores:
        squares = (query[..., :, None, :] - key[..., None, :, :]).square().sum(-1)
        return -0.5 / broadcast_per_head(self.bandwidth, query) ** 2 * squares

    def stream(self, query: Queries, key: Keys) -> Scores:
        wide = torch.promote_types(query.dtype, torch.float32)
        half = -0.5 / broadcast_per_head(self.bandwidth, query) ** 2
        return (half * compute_distances(query, key, 2)).to(wide)

    def dot_form(self, query: Queries, key: Keys) -> DotForm:
        center = key.detach().mean(-2, keepdim=True)
        near, far = query - center, key - center
        half = -0.5 / broadcast_per_head(self.bandwidth, query) ** 2
        flat, wide = drop_last_axis(half), torch.promote_types(far.dtype, torch.float32)
        row, column = near.to(wide).square().sum(-1), far.to(wide).square().sum(-1)
        return DotForm(near, far, scale=-2.0 * half, row=flat * row, column=flat * column)
