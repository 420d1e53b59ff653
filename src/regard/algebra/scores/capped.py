"""Scores kept in a range."""

from collections.abc import Hashable
from typing import ClassVar

import torch

from regard.algebra.entries import list_as
from regard.algebra.scores.base import Score
from regard.algebra.scores.dot import ScaledDot
from regard.algebra.shapes import Queries, Scores, Tensor, WideKeys
from regard.algebra.terms import broadcast_per_head, check_setting
from regard.errors import wrong


@list_as("capped", lambda _: Capped(ScaledDot(), cap=30.0))
class Capped(Score):
    r"""Any score, squeezed smoothly into $(-c, c)$.

    $$ s'_{ij} = c \tanh(s_{ij} / c) $$

    with $c$ = `cap`, one or one for each head. Bello et al. 2016 (*logit clipping*); Gemma 2.

    Lowers to: query blocks.

    >>> from regard.algebra.scores import Dot
    >>> Capped(Dot(), cap=2.0)(torch.tensor([[1.0]]), torch.tensor([[1e6]]))
    tensor([[2.]])
    """

    head_blind: ClassVar[bool] = True
    per_head_settings: ClassVar[tuple[str, ...]] = ("cap",)

    def __init__(self, score: Score, cap: float | Tensor = 30.0) -> None:
        super().__init__()
        check_setting("cap", cap)
        if not isinstance(cap, Tensor) and not cap > 0:
            raise wrong("cap", cap, "a number above 0", "use 30.0 or 50.0, the usual ones")
        self.score, self.cap = score, cap

    @property
    def uses_key_positions(self) -> bool:
        return self.score.uses_key_positions

    @property
    def centers_keys(self) -> bool:
        return self.score.centers_keys

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
