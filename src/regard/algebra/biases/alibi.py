"""Attention with linear biases."""

import math
from collections.abc import Hashable

import torch

from regard.algebra.biases.base import Bias, BiasForm
from regard.algebra.entries import list_as
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Float, Tensor, check_lead, check_tensor
from regard.compute.kernels.native import tensor_memory
from regard.errors import wrong


def compute_slopes(heads: int) -> Float[Tensor, " heads"]:
    """Return one slope for each head: a geometric sequence from 2^(−8/n) by that factor (Press et al. 2022, §3).

    If n is not a power of two: the slopes of the largest power p below n, then every other slope of 2p, as the
    authors' code has it and BLOOM was trained with.

    >>> compute_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    >>> compute_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    power = 2 ** (heads.bit_length() - 1)
    slopes = 2.0 ** (-8.0 * torch.arange(1, power + 1, dtype=torch.float64) / power)
    between = 2.0 ** (-4.0 * torch.arange(1, 2 * power, 2, dtype=torch.float64) / power)
    return torch.cat([slopes, between[: heads - power]])


def compute_steepest(heads: int) -> float:
    """Return the largest of the slopes for so many heads, without a tensor that a tracer might keep to itself.

    >>> max(abs(compute_steepest(n) - float(compute_slopes(n).max())) for n in range(1, 40)) < 1e-15
    True
    """
    power = 2 ** (heads.bit_length() - 1)
    return float(2.0 ** (-(4.0 if heads > power else 8.0) / power))


def find_largest(slopes: Float[Tensor, " heads"]) -> float:
    """Return the largest slope; infinity if the slopes cannot be read, so that digits are never lost."""
    return float(slopes.detach().abs().max()) if tensor_memory.is_readable(slopes) else math.inf


LARGEST_COLUMN = 16.0  # the largest number for a key: rounding it costs as many units in the last place


@list_as("alibi", lambda s: ALiBi(s.heads or 1), aliases="press linear-bias 线性偏置")
class ALiBi(Bias):
    r"""The further away, the lower the score, by a fixed slope for each head.

    $$ b_{ij} = -m_h |p_i - j| $$

    with $m$ = `slope`, that of the paper for a number of `heads` or the given `slopes`, and $p_i$ = the position of
    query $i$. Press et al. 2022.

    Lowers to: a number for each key under a causal mask and softmax, because $-m (p_i - j)$ differs from $m j$ by a
    number for each query alone; a dense float mask otherwise, or if $m j$ would be so large that digits are lost.

    >>> from regard.algebra.pairs import Pairs
    >>> ALiBi(1)(Pairs(1, 3)).flatten().tolist()
    [-0.0078125, -0.00390625, -0.0]
    """

    def __init__(self, heads: int | None = None, *, slopes: Float[Tensor, " heads"] | None = None) -> None:
        super().__init__()
        if (heads is None) == (slopes is None) or (heads is not None and heads < 1):
            expected, fix = "a number of heads, at least 1, or a slope for each", "write ALiBi(8), or ALiBi(slopes=…)"
            raise wrong("heads", heads, expected, fix)
        if slopes is not None:
            check_tensor("slopes", slopes)
        own = compute_slopes(heads or 1) if slopes is None else slopes
        self.register_buffer("slope", own[:, None, None], persistent=slopes is not None)
        self.slope: Tensor
        self.steepest = compute_steepest(heads or 1) if slopes is None else find_largest(slopes)

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
