"""Scores kept in a range."""

import torch

from regard.algebra.entries import list_as
from regard.algebra.scores.base import Score, TransformedScore
from regard.algebra.scores.dot import ScaledDot
from regard.algebra.shapes import Scores, Tensor
from regard.algebra.terms import broadcast_per_head


@list_as("capped", lambda _: Capped(ScaledDot(), cap=30.0), aliases="softcap soft-cap tanh-cap 封顶")
class Capped(TransformedScore):
    r"""Any score, squeezed smoothly into $(-c, c)$.

    $$ s'_{ij} = c \tanh(s_{ij} / c) $$

    with $c$ = `cap`, one or one for each head. Bello et al. 2016 (*logit clipping*); Gemma 2.

    Lowers to: query blocks.

    >>> from regard.algebra.scores import Dot
    >>> Capped(Dot(), cap=2.0)(torch.tensor([[1.0]]), torch.tensor([[1e6]]))
    tensor([[2.]])
    """

    cap: float | Tensor

    def __init__(self, score: Score, cap: float | Tensor = 30.0) -> None:
        super().__init__(score)
        self.hold_setting("cap", cap, fix_if_not_positive="use 30.0 or 50.0, the usual ones")

    def transform(self, scores: Scores) -> Scores:
        cap = broadcast_per_head(self.cap)
        return cap * torch.tanh(scores / cap)
