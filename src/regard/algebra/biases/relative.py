"""Relative positions in buckets, as in T5."""

import math

import torch
from torch import nn

from regard.algebra.biases.base import Bias
from regard.algebra.entries import list_as
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Float, Int, Tensor, check_lead
from regard.errors import wrong


def assign_buckets(distance: Int[Tensor, "..."], count: int, farthest: int, *, causal: bool) -> Int[Tensor, "..."]:
    """Return the bucket of each distance `key − query`: exact if near, logarithmic if far (Raffel et al. 2020, §2.1).

    Causal: all buckets are for the past. Otherwise half of them are for the future.

    >>> assign_buckets(torch.tensor([-3, -1, 0, 1, 3]), 8, 16, causal=False).tolist()
    [2, 1, 0, 5, 6]
    """
    if causal:
        side, away = torch.zeros_like(distance), (-distance).clamp_min(0)
    else:
        count //= 2
        side, away = (distance > 0).long() * count, distance.abs()
    near = count // 2
    share = torch.log(away.clamp_min(1).double() / near) / math.log(farthest / near)
    far = (near + (share * (count - near)).long()).clamp_max(count - 1)
    return side + torch.where(away < near, away, far)


@list_as(
    "relative",
    lambda s: Relative(s.heads or 1),
    write="Relative({heads})",
    aliases="t5 relative-position buckets 相对位置",
)
class Relative(Bias):
    r"""A learned number for each head and each bucket of the distance.

    $$ b_{ij} = t_{h,\,\beta(j - p_i)} $$

    with $t$ = `table` and $\beta$ = `assign_buckets`. Raffel et al. 2020, §2.1.

    Lowers to: a dense float mask if no gradient is needed, else query blocks: fused kernels give no gradient to a mask.
    """

    def __init__(self, heads: int, *, count: int = 32, farthest: int = 128, causal: bool = False) -> None:
        super().__init__()
        if count < 4 or count % 2:
            raise wrong("count", count, "an even number of buckets, at least 4", "use 32, as T5 does")
        near = count // 2 if causal else count // 4
        if farthest <= near:
            raise wrong("farthest", farthest, f"more than the {near} distances with a bucket of their own", "use 128")
        self.count, self.farthest, self.causal = count, farthest, causal
        self.table = nn.Parameter(torch.zeros(heads, count))

    def forward(self, pairs: Pairs) -> Float[Tensor, "..."]:
        buckets = assign_buckets(pairs.column - pairs.position, self.count, self.farthest, causal=self.causal)
        return self.table[:, buckets]

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_lead("bias", (self.table.shape[0],), lead)
