"""Attention with linear biases."""

from collections.abc import Hashable

import torch

from regard.algebra.biases.base import Bias, BiasForm
from regard.algebra.entries import list_as
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Float, Tensor, check_lead
from regard.errors import wrong


def compute_slopes(heads: int) -> Float[Tensor, " heads"]:
    """Return one slope for each head: a geometric sequence from 2^(−8/n) by that factor (Press et al. 2022, §3).

    >>> compute_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)


LARGEST_COLUMN = 16.0  # the largest number for a key: rounding it costs as many units in the last place


@list_as("alibi", lambda s: ALiBi(s.heads or 1), aliases="press linear-bias 线性偏置")
class ALiBi(Bias):
    r"""The further away, the lower the score, by a fixed slope for each head.

    $$ b_{ij} = -m_h |p_i - j| $$

    with $m$ = `slope` and $p_i$ = the position of query $i$. Press et al. 2022.

    Lowers to: a number for each key under a causal mask and softmax, because $-m (p_i - j)$ differs from $m j$ by a
    number for each query alone; a dense float mask otherwise, or if $m j$ would be so large that digits are lost.

    >>> from regard.algebra.pairs import Pairs
    >>> ALiBi(1)(Pairs(1, 3)).flatten().tolist()
    [-0.0078125, -0.00390625, -0.0]
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        if heads < 1:
            raise wrong("heads", heads, "at least 1", "pass the number of heads of the layer")
        self.register_buffer("slope", compute_slopes(heads)[:, None, None], persistent=False)
        self.slope: Tensor
        self.steepest = 2.0 ** (-8.0 / heads)

    def forward(self, pairs: Pairs) -> Float[Tensor, "..."]:
        return -self.slope * (pairs.position - pairs.column).abs()

    @property
    def plan_key(self) -> Hashable:
        return type(self), self.steepest

    def form(self, *, causal: bool, shift_invariant: bool, keys: int) -> BiasForm:
        small = self.steepest * keys <= LARGEST_COLUMN
        return "column" if causal and shift_invariant and small else "dense"

    def column(self, pairs: Pairs) -> Float[Tensor, "..."]:
        return self.slope[..., 0] * (pairs.column[0] - (pairs.keys - 1))

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_lead("bias", tuple(self.slope.shape[:-2]), lead)
