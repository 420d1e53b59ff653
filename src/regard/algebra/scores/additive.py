"""Bahdanau's additive score and Luong's *concat*."""

from typing import ClassVar

import torch
from torch import nn

from regard.algebra.entries import list_as
from regard.algebra.scores.base import Form, Score
from regard.algebra.shapes import Queries, Scores, Tensor, WideKeys
from regard.compute.kernels.additive import additive_scores
from regard.errors import wrong


def init_uniform(*shape: int) -> nn.Parameter:
    """Uniform in ±1/√(last axis), as nn.Linear starts."""
    bound = shape[-1] ** -0.5
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))


@list_as("additive", lambda s: Additive(s.query, query=s.query, key=s.key, heads=s.heads))
class Additive(Score):
    r"""A small network with one hidden layer that looks at query and key.

    $$ s_{ij} = v^\top \tanh(W q_i + U k_j) $$

    with $v$ = `weight` (one for each head where heads are given), $W$ = `query`, $U$ = `key`. Where no widths are
    given, query and key are already projected to `hidden`: so a layer can project the keys once and keep them.
    Bahdanau et al. 2015, §A.1.2.

    Lowers to: query blocks of a kernel with no tanh in its loop, because
    $\tanh(a + b) = 1 - 2 / (1 + e^{2a} e^{2b})$.

    >>> Additive(3)(torch.zeros(1, 3), torch.zeros(2, 3))
    tensor([[0., 0.]], grad_fn=<SqueezeBackward1>)
    """

    head_blind: ClassVar[bool] = True

    def __init__(
        self, hidden: int, *, query: int | None = None, key: int | None = None, heads: int | None = None
    ) -> None:
        super().__init__()
        self.weight = init_uniform(heads, hidden) if heads else init_uniform(hidden)
        self.query = None if query is None else nn.Linear(query, hidden, bias=False)
        self.source = None if key is None else nn.Linear(key, hidden)

    @property
    def form(self) -> Form:
        return "additive"

    def project(self, query: Queries, key: WideKeys) -> tuple[Tensor, Tensor]:
        """Query and key in the hidden layer, before they are added."""
        near = query if self.query is None else self.query(query)
        return near, key if self.source is None else self.source(key)

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        near, far = self.project(query, key)
        hidden = torch.tanh(near[..., :, None, :] + far[..., None, :, :])
        return (hidden @ self.weight[..., None, :, None]).squeeze(-1)

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        near, far = self.project(query, key)
        return additive_scores(near, far, self.weight)

    def check(self, query: Queries, key: WideKeys) -> None:
        hidden = self.weight.shape[-1]
        sides = (("query", query, self.query), ("key", key, self.source))
        for name, tensor, linear in sides:
            width = hidden if linear is None else linear.in_features
            if tensor.shape[-1] != width:
                fix = f"build Additive({hidden}, query={query.shape[-1]}, key={key.shape[-1]})"
                raise wrong(name, f"width {tensor.shape[-1]}", f"the score's own {width}", fix)


@list_as("concat", lambda s: Concat(s.query, query=s.query, key=s.key))
class Concat(Score):
    r"""Query and key side by side through one matrix.

    $$ s_{ij} = v^\top \tanh(W [q_i; k_j]) $$

    with $v$ = `weight`, $W$ = `matrix` (hidden × both widths). Luong et al. 2015, eq. 8 (*concat*).

    Lowers to: the additive kernel, because $W [q; k] = W_q q + W_k k$.

    >>> Concat(4, query=2, key=3)(torch.ones(1, 2), torch.ones(5, 3)).shape
    torch.Size([1, 5])
    """

    head_blind: ClassVar[bool] = True

    def __init__(self, hidden: int, *, query: int, key: int) -> None:
        super().__init__()
        self.widths = query, key
        self.matrix = init_uniform(hidden, query + key)
        self.weight = init_uniform(hidden)

    @property
    def form(self) -> Form:
        return "additive"

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        shape = (*lead, query.shape[-2], key.shape[-2])
        near = query[..., :, None, :].expand(*shape, query.shape[-1])
        far = key[..., None, :, :].expand(*shape, key.shape[-1])
        return torch.tanh(nn.functional.linear(torch.cat([near, far], dim=-1), self.matrix)) @ self.weight

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        left, right = self.matrix.split(self.widths, dim=-1)
        linear = nn.functional.linear
        return additive_scores(linear(query, left), linear(key, right), self.weight)

    def check(self, query: Queries, key: WideKeys) -> None:
        for name, tensor, width in (("query", query, self.widths[0]), ("key", key, self.widths[1])):
            if tensor.shape[-1] != width:
                hidden = self.weight.shape[-1]
                fix = f"build Concat({hidden}, query={query.shape[-1]}, key={key.shape[-1]})"
                raise wrong(name, f"width {tensor.shape[-1]}", f"the score's own {width}", fix)
