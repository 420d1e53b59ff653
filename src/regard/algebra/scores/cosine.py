"""Cosine similarity."""

import torch
from torch import nn

from regard.algebra.entries import list_as, list_learned
from regard.algebra.scores.base import DotForm, DotScore, KeyGrowth
from regard.algebra.shapes import Keys, Queries, Scores, Tensor, widen
from regard.algebra.terms import broadcast_per_head, learn_setting

SMALLEST = 1e-12  # a vector shorter than this has no direction; its score is 0


@list_as("cosine", lambda _: Cosine(temperature=0.1), aliases="content-based ntm 余弦")
@list_learned("learned-cosine", aliases="可学习余弦")
class Cosine(DotScore):
    r"""The cosine of the angle between query and key, over a temperature.

    $$ s_{ij} = \frac{q_i^\top k_j}{\tau \lVert q_i \rVert \lVert k_j \rVert} $$

    with $\tau$ = `temperature`, fixed or learned, one or one for each head. Graves et al. 2014,
    eq. 6 ($\beta = 1/\tau$).

    Lowers to: a dot product of unit vectors.

    >>> Cosine()(torch.tensor([[3.0, 0.0]]), torch.tensor([[5.0, 0.0], [0.0, 1.0]]))
    tensor([[1., 0.]])
    """

    head_blind = True
    key_growth: KeyGrowth = "none"
    temperature: float | Tensor

    def __init__(self, temperature: float | Tensor = 1.0) -> None:
        super().__init__()
        self.hold_setting("temperature", temperature)

    @classmethod
    def learned(cls, temperature: float = 0.1, *, heads: int | None = None) -> "Cosine":
        """Return one whose temperature is trained, for each head if heads are given."""
        return cls(learn_setting(temperature, heads))

    def forward(self, query: Queries, key: Keys) -> Scores:
        shortest = get_smallest_norm(query)
        near, far = query.norm(dim=-1).clamp_min(shortest), key.norm(dim=-1).clamp_min(shortest)
        cosines = query @ key.transpose(-1, -2) / near[..., :, None] / far[..., None, :]
        out: Tensor = cosines / broadcast_per_head(self.temperature)
        return out

    def dot_form(self, query: Queries, key: Keys) -> DotForm:
        factor = 1.0 / broadcast_per_head(self.temperature, query)
        return DotForm(normalize(query), normalize(key), scale=factor)


def normalize(vectors: Tensor) -> Tensor:
    """Return unit vectors in the same directions; in half precision the norm itself would overflow or vanish."""
    units: Tensor = nn.functional.normalize(widen(vectors), dim=-1, eps=SMALLEST)
    return units.to(vectors.dtype)


def get_smallest_norm(vectors: Tensor) -> float:
    """Return the length below which a vector has no direction, a number that its dtype has (float16 has no 1e-12)."""
    return max(SMALLEST, torch.finfo(vectors.dtype).tiny)
