"""Bahdanau's additive score and Luong's *concat*."""

from collections.abc import Iterator

import torch
from torch import nn

from regard.algebra.entries import Sizes, list_as
from regard.algebra.scores.base import Form, KeyGrowth, Score, check_widths
from regard.algebra.shapes import Queries, Scores, Tensor, WideKeys
from regard.compute.kernels.additive import additive_scores


def init_uniform(*shape: int) -> nn.Parameter:
    """Return a parameter that starts uniform in ±1/√(last axis), as nn.Linear does."""
    bound = shape[-1] ** -0.5
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))


def _build_additive(sizes: Sizes) -> "Additive":
    """Build the score for these sizes: W and U are the layer's, if it projects queries and keys."""
    if sizes.projected and sizes.query == sizes.key:
        return Additive.projected(sizes.query, heads=sizes.heads)
    return Additive(sizes.query, sizes.key, heads=sizes.heads)


@list_as(
    "additive",
    _build_additive,
    write="Additive(query={query}, key={key}, hidden={query})",
    aliases="bahdanau mlp perceptron 加性 加性注意力",
)
class Additive(Score):
    r"""A small network with one hidden layer of query and key.

    $$ s_{ij} = v^\top \tanh(W q_i + U k_j) $$

    with $v$ = `weight` (one for each head if heads are given), $W$ = `query` and $U$ = `key`, matrices without a bias,
    to a hidden layer of `hidden` units. `Additive(64)` is short for `Additive(query=64, key=64, hidden=64)`.
    `Additive.projected(hidden)` has $v$ alone, for queries and keys that a layer has projected already: it can then
    keep the projected keys. Bahdanau et al. 2015, §A.1.2.

    Lowers to: query blocks. The compiled kernel has no tanh in its loop, because
    $\tanh(a + b) = 1 - 2 / (1 + e^{2a} e^{2b})$; without it torch takes tanh of every pair.

    >>> Additive(query=3, key=5, hidden=7)(torch.ones(1, 3), torch.ones(2, 5)).shape
    torch.Size([1, 2])
    >>> Additive.projected(3)(torch.zeros(1, 3), torch.zeros(2, 3))
    tensor([[0., 0.]], grad_fn=<SqueezeBackward1>)
    """

    form: Form = "additive"
    head_blind = True
    key_growth: KeyGrowth = "linear"

    def __init__(
        self, query: int, key: int | None = None, hidden: int | None = None, *, heads: int | None = None
    ) -> None:
        super().__init__()
        key, hidden = query if key is None else key, query if hidden is None else hidden
        self.weight = init_uniform(heads, hidden) if heads else init_uniform(hidden)
        self.query: nn.Linear | None = nn.Linear(query, hidden, bias=False)
        self.key: nn.Linear | None = nn.Linear(key, hidden, bias=False)

    @classmethod
    def projected(cls, hidden: int, *, heads: int | None = None) -> "Additive":
        """Return the score of queries and keys that are projected to the hidden layer already."""
        score = cls(1, 1, hidden, heads=heads)
        score.query = score.key = None
        return score

    def project(self, query: Queries, key: WideKeys) -> tuple[Tensor, Tensor]:
        """Return query and key in the hidden layer, before they are added."""
        near = query if self.query is None else self.query(query)
        return near, key if self.key is None else self.key(key)

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        near, far = self.project(query, key)
        hidden = torch.tanh(near[..., :, None, :] + far[..., None, :, :])
        return (hidden @ self.weight[..., None, :, None]).squeeze(-1)

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        return additive_scores(*self.project(query, key), self.weight)

    def own_head_tensors(self) -> Iterator[tuple[str, Tensor]]:
        if self.weight.dim() > 1:
            yield "weight", self.weight[..., 0]

    def check(self, query: Queries, key: WideKeys) -> None:
        hidden = self.weight.shape[-1]
        first, second = (hidden if linear is None else linear.in_features for linear in (self.query, self.key))
        fix = f"build Additive(query={query.shape[-1]}, key={key.shape[-1]}, hidden={hidden})"
        check_widths(query, key, (first, second), fix)


@list_as(
    "concat",
    lambda s: Concat(s.query, s.key),
    write="Concat(query={query}, key={key}, hidden={query})",
    aliases="luong-concat 拼接",
)
class Concat(Score):
    r"""Query and key side by side through one matrix.

    $$ s_{ij} = v^\top \tanh(W [q_i; k_j]) $$

    with $v$ = `weight`, $W$ = `matrix` (hidden × both widths). `Concat(64)` is short for `Concat(query=64, key=64,
    hidden=64)`. Luong et al. 2015, eq. 8 (*concat*).

    Lowers to: the additive kernel, because $W [q; k] = W_q q + W_k k$.

    >>> Concat(query=2, key=3, hidden=4)(torch.ones(1, 2), torch.ones(5, 3)).shape
    torch.Size([1, 5])
    """

    form: Form = "additive"
    head_blind = True
    key_growth: KeyGrowth = "linear"

    def __init__(self, query: int, key: int | None = None, hidden: int | None = None) -> None:
        super().__init__()
        key, hidden = query if key is None else key, query if hidden is None else hidden
        self.widths = query, key
        self.matrix = init_uniform(hidden, query + key)
        self.weight = init_uniform(hidden)

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
        fix = f"build Concat(query={query.shape[-1]}, key={key.shape[-1]}, hidden={self.weight.shape[-1]})"
        check_widths(query, key, self.widths, fix)
