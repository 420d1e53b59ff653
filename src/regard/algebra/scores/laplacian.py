"""The Laplacian kernel."""

import torch

from regard.algebra.entries import list_as, list_learned
from regard.algebra.scores.base import KernelScore
from regard.algebra.shapes import Keys, Queries, Scores
from regard.algebra.terms import broadcast_per_head
from regard.compute.kernels.distance import compute_distances


@list_as("laplacian", aliases="laplace 拉普拉斯 拉普拉斯核")
@list_learned("learned-laplacian", aliases="可学习拉普拉斯核")
class Laplacian(KernelScore):
    r"""How close the query is to the key, by absolute differences.

    $$ s_{ij} = -\frac{\lVert q_i - k_j \rVert_1}{h} $$

    with $h$ = `bandwidth`, fixed or learned, one or one for each head. Kim et al. 2019 (*Attentive Neural Processes*),
    §2.

    Lowers to: query blocks; the distances come from `torch.cdist`, which writes no difference out.

    >>> Laplacian(bandwidth=1.0)(torch.eye(2), torch.eye(2))
    tensor([[-0., -2.],
            [-2., -0.]])
    """

    def forward(self, query: Queries, key: Keys) -> Scores:
        return -(query[..., :, None, :] - key[..., None, :, :]).abs().sum(-1) / broadcast_per_head(self.bandwidth)

    def stream(self, query: Queries, key: Keys) -> Scores:
        wide = torch.promote_types(query.dtype, torch.float32)
        return -compute_distances(query, key, 1).to(wide) / broadcast_per_head(self.bandwidth)
