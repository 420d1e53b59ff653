"""Scores kept in a range."""

from collections.abc import Hashable
from typing import ClassVar

import torch

from regard.errors import wrong
from regard.scores.base import Score
from regard.shapes import Queries, Scores, WideKeys


class Capped(Score):
    r"""Any score, squeezed smoothly into $(-c, c)$.

    $$ s'_{ij} = c \tanh(s_{ij} / c) $$

    with $c$ = `cap`. Bello et al. 2016 (*logit clipping*); Gemma 2.

    Lowers to: query blocks.

    >>> from regard.scores import Dot
    >>> Capped(Dot(), cap=2.0)(torch.tensor([[1.0]]), torch.tensor([[1e6]]))
    tensor([[2.]])
    """

    head_blind: ClassVar[bool] = True

    def __init__(self, score: Score, cap: float = 30.0) -> None:
        super().__init__()
        if not cap > 0:
            raise wrong("cap", cap, "a number above 0", "use 30.0 or 50.0, the usual ones")
        self.score, self.cap = score, cap

    @property
    def key(self) -> Hashable:
        return type(self), self.score.key

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        return self.cap * torch.tanh(self.score(query, key) / self.cap)

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        return self.cap * torch.tanh(self.score.stream(query, key) / self.cap)

    def check(self, query: Queries, key: WideKeys) -> None:
        self.score.check(query, key)
