"""Scores kept in a range."""

from collections.abc import Hashable

import torch

from regard.algebra.entries import list_as
from regard.algebra.scores.base import Score
from regard.algebra.scores.dot import ScaledDot
from regard.algebra.shapes import Queries, Scores, Tensor, WideKeys
from regard.algebra.terms import broadcast_per_head, check_setting


@list_as("capped", lambda _: Capped(ScaledDot(), cap=30.0), aliases="softcap soft-cap tanh-cap 封顶")
class Capped(Score):
    r"""Any score, squeezed smoothly into $(-c, c)$.

    $$ s'_{ij} = c \tanh(s_{ij} / c) $$

    with $c$ = `cap`, one or one for each head. Bello et al. 2016 (*logit clipping*); Gemma 2.

    Lowers to: query blocks.

    >>> from regard.algebra.scores import Dot
    >>> Capped(Dot(), cap=2.0)(torch.tensor([[1.0]]), torch.tensor([[1e6]]))
    tensor([[2.]])
    """

    head_blind = True
    per_head_settings = ("cap",)
    cap: float | Tensor

    def __init__(self, score: Score, cap: float | Tensor = 30.0) -> None:
        super().__init__()
        self.score = score
        self.hold("cap", check_setting("cap", cap, fix_if_not_positive="use 30.0 or 50.0, the usual ones"))

    @property
    def plan_key(self) -> Hashable:
        return type(self), self.score.plan_key

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        cap, scores = broadcast_per_head(self.cap), self.score(query, key)
        table: Tensor = cap * torch.tanh(scores / cap)
        return table

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        cap = broadcast_per_head(self.cap)
        return cap * torch.tanh(self.score.stream(query, key) / cap)

    def check(self, query: Queries, key: WideKeys) -> None:
        self.score.check(query, key)
