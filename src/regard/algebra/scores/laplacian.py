"""The Laplacian kernel."""

from typing import ClassVar

import torch
from torch import nn

from regard.algebra.entries import list_as
from regard.algebra.scores.base import Score
from regard.algebra.shapes import Keys, Queries, Scores, Tensor
from regard.algebra.terms import broadcast_per_head, check_setting
from regard.compute.kernels.distance import compute_distances


@list_as("laplacian")
@list_as("learned-laplacian", lambda s: Laplacian.learned(heads=s.heads))
class Laplacian(Score):
    r"""How close the query is to the key, by absolute differences.

    $$ s_{ij} = -w \lVert q_i - k_j \rVert_1 $$

    with $w$ = `width`, fixed or learned, one or one for each head. Kim et al. 2019 (*Attentive Neural Processes*), §2.

    Lowers to: query blocks; the distances come from `torch.cdist`, which writes no difference out.

    >>> Laplacian(width=1.0)(torch.eye(2), torch.eye(2))
    tensor([[-0., -2.],
            [-2., -0.]])
    """

    head_blind: ClassVar[bool] = True
    per_head_settings: ClassVar[tuple[str, ...]] = ("width",)

    def __init__(self, width: float | Tensor = 1.0) -> None:
        super().__init__()
        check_setting("width", width)
        self.width = width

    @classmethod
    def learned(cls, width: float = 1.0, *, heads: int | None = None) -> "Laplacian":
        """With a width that is trained, one for each head where heads are given."""
        return cls(nn.Parameter(torch.full((heads,) if heads else (), width)))

    def forward(self, query: Queries, key: Keys) -> Scores:
        return -broadcast_per_head(self.width) * (query[..., :, None, :] - key[..., None, :, :]).abs().sum(-1)

    def stream(self, query: Queries, key: Keys) -> Scores:
        wide = torch.promote_types(query.dtype, torch.float32)
        return -broadcast_per_head(self.width) * compute_distances(query, key, 1).to(wide)
