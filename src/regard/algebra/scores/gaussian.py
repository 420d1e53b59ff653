"""The Gaussian kernel of Nadaraya–Watson regression."""

from typing import ClassVar

import torch
from torch import nn

from regard.algebra.entries import list_as
from regard.algebra.scores.base import DotForm, DotScore
from regard.algebra.shapes import Keys, Queries, Scores, Tensor
from regard.algebra.terms import broadcast_per_head, check_setting
from regard.compute.kernels.distance import compute_distances


@list_as("gaussian")
@list_as("learned-gaussian", lambda s: Gaussian.learned(heads=s.heads))
class Gaussian(DotScore):
    r"""How close the query is to the key.

    $$ s_{ij} = -\tfrac{1}{2} w^2 \lVert q_i - k_j \rVert^2 $$

    with $w$ = `width`, fixed or learned, one or one for each head. With softmax this is Nadaraya–Watson regression
    (Nadaraya 1964; Watson 1964).

    Lowers to: a dot product with one more coordinate, around the center of the keys; in float64 if float32 would lose
    digits, and difference by difference if float64 would.

    >>> Gaussian(width=1.0)(torch.eye(2), torch.eye(2))
    tensor([[-0., -1.],
            [-1., -0.]])
    """

    head_blind: ClassVar[bool] = True
    per_head_settings: ClassVar[tuple[str, ...]] = ("width",)

    def __init__(self, width: float | Tensor = 1.0) -> None:
        super().__init__()
        check_setting("width", width)
        self.width = width

    @classmethod
    def learned(cls, width: float = 1.0, *, heads: int | None = None) -> "Gaussian":
        """With a width that is trained, one for each head where heads are given."""
        return cls(nn.Parameter(torch.full((heads,) if heads else (), width)))

    @property
    def centers_keys(self) -> bool:
        return True

    def forward(self, query: Queries, key: Keys) -> Scores:
        squares = (query[..., :, None, :] - key[..., None, :, :]).square().sum(-1)
        return -0.5 * broadcast_per_head(self.width) ** 2 * squares

    def stream(self, query: Queries, key: Keys) -> Scores:
        wide = torch.promote_types(query.dtype, torch.float32)
        half = -0.5 * broadcast_per_head(self.width) ** 2
        return (half * compute_distances(query, key, 2)).to(wide)

    def dot_form(self, query: Queries, key: Keys) -> DotForm:
        center = key.detach().mean(-2, keepdim=True)
        near, far = query - center, key - center
        half = -0.5 * broadcast_per_head(self.width) ** 2
        flat = half.squeeze(-1) if isinstance(half, Tensor) and half.dim() else half
        wide = torch.float32 if far.dtype in (torch.float16, torch.bfloat16) else far.dtype
        row, column = near.to(wide).square().sum(-1), far.to(wide).square().sum(-1)
        return DotForm(near, far, scale=-2.0 * half, row=flat * row, column=flat * column)
