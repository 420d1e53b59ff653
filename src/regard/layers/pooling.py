"""Pooling: a sequence becomes a few vectors, one for each learned query."""

import torch
from torch import nn

from regard.algebra.masks import Mask
from regard.algebra.scores import Dot
from regard.algebra.shapes import Float, Tensor
from regard.compute.attend import AttentionResult
from regard.layers.mechanism import Mechanism
from regard.layers.memory import FULL, zero_padding
from regard.layers.projections import default_to_identity


class Pooling(nn.Module):
    r"""Learned queries that attend to the sequence.

    $$ z = \sum_i \alpha_i x_i, \qquad \alpha_i = \frac{\exp(q^\top f(x_i))}{\sum_{i'} \exp(q^\top f(x_{i'}))} $$

    with $q$ = `query` (one or several), $f$ = `key` (None: the identity) and any other mechanism in place of
    dot product and softmax. Yang et al. 2016, eq. 5-7; several queries: Lin et al. 2017, eq. 6-7.

    >>> Pooling(3, queries=2)(torch.ones(5, 7, 3)).shape
    torch.Size([5, 2, 3])
    """

    def __init__(
        self, width: int, *, queries: int = 1, key: nn.Module | None = None, mechanism: Mechanism | None = None
    ) -> None:
        super().__init__()
        bound = width**-0.5
        self.query = nn.Parameter(torch.empty(queries, width).uniform_(-bound, bound))
        self.key = default_to_identity(key)
        self.mechanism = Mechanism(Dot()) if mechanism is None else mechanism

    @classmethod
    def additive(cls, size: int, hidden: int, *, queries: int = 1, mechanism: Mechanism | None = None) -> "Pooling":
        r"""Build a pooling with $f(x) = \tanh(W x + b)$, so that $\alpha_i \propto \exp(q^\top \tanh(W x_i + b))$.

        >>> Pooling.additive(3, 11)(torch.ones(5, 7, 3)).shape
        torch.Size([5, 1, 3])
        """
        key = nn.Sequential(nn.Linear(size, hidden), nn.Tanh())
        return cls(hidden, queries=queries, key=key, mechanism=mechanism)

    def attend(self, source: Float[Tensor, "*lead key size"], *, mask: Mask = FULL) -> AttentionResult:
        """Return the vectors `(*lead, queries, size)` and the weights that they come from."""
        source = zero_padding(source, mask)
        query = self.query.view(*(1 for _ in source.shape[:-2]), *self.query.shape)  # all sequences share the queries
        return self.mechanism.attend(query, self.key(source), source, mask=mask)

    def forward(
        self, source: Float[Tensor, "*lead key size"], *, mask: Mask = FULL
    ) -> Float[Tensor, "*lead queries size"]:
        return self.attend(source, mask=mask).output
