r"""The softmax family in plain torch: what every device runs, and what the native rows are tested against.

With $u_j = s_j - \max s$ and $a = \alpha - 1$ the weights are $p_j = [b + a u_j]_+^{1/a}$, where $b$ is such that
they sum to one: $b = p_1^a$ for the largest weight $p_1$. Wherever $b$ is put, what it leaves is divided by its sum, so
that rows sum to one whatever was rounded on the way.

Sparsemax and entmax-1.5 look for $b$ itself. It keeps its digits however small it is, which $1 - b$ does not: among n
equal scores $b = n^{-a}$. The root is that of a norm, $\lVert [b + a u]_+ \rVert_{1/a} = 1$, which is convex for
$a \le 1$: Newton from $b = 1$ never passes it but by rounding.

For any α the unknown is $m = -\log p_1$, between 0 and $\log n$: $b = e^{-a m}$ would underflow for a large α, and
lose its digits for one close to 1. With $c = a e^{a m}$ the weights are $p_j = e^{-m} [1 + c u_j]_+^{1/a}$, and the
logarithm of their sum falls with $m$ at the rate $\sum_j p_j / (1 + c u_j) / \sum_j p_j$. Above α = 2 the sum is all
but a step where a score enters the support, so Newton goes within a bracket, and the answer is the mixture of both
ends of the bracket which sums to one.
"""

from enum import IntEnum
from math import ceil, log, log2

import torch
from torch import Tensor

from regard.algebra.shapes import Bool, Float
from regard.compute.kernels.native import tensor_memory

LONG = 256
HUGE = 2**16


class SimplexRule(IntEnum):
    """Which member of the family. The numbers are known to native/simplex.hpp."""

    SOFTMAX = 0
    SOFTMAX_PLUS_ONE = 1
    SPARSEMAX = 2
    ENTMAX15 = 3
    ENTMAX = 4


Rows = Float[Tensor, "*lead n"]
Mask = Bool[Tensor, "*#lead #n"]
Column = Float[Tensor, "*lead 1"]


def compute_row_weights(scores: Rows, allowed: Mask | None, alpha: Column | None, rule: SimplexRule) -> Rows:
    r"""Return weights from scores: 0 where not allowed, at $-\infty$, and in a row that has nothing else."""
    if allowed is None:
        return _compute_weights(scores, alpha, rule)
    weights = _compute_weights(torch.where(allowed, scores, -torch.inf), alpha, rule)
    return torch.where(allowed, weights, 0.0)  # a NaN that is allowed spoils its row, but not this promise


def _compute_weights(scores: Rows, alpha: Column | None, rule: SimplexRule) -> Rows:
    top = scores.amax(-1, keepdim=True)
    empty = top == -torch.inf
    if rule is SimplexRule.SOFTMAX:
        weights = torch.softmax(scores, -1).masked_fill(empty, 0.0)
        # torch's kernel for the CPU adds up one after the other, and a long row is off by a unit for each 500 keys.
        long = scores.device.type == "cpu" and scores.shape[-1] > LONG
        return _normalize_rows(weights) if long else weights
    if rule is SimplexRule.SOFTMAX_PLUS_ONE:
        powers = (scores - top.clamp(min=0.0)).exp()
        return powers / (powers.sum(-1, keepdim=True) + (-top.clamp(min=0.0)).exp())
    if alpha is None:
        return _normalize_rows(_solve_power_rows(scores - top.masked_fill(empty, 0.0), rule))
    work = choose_wide_dtype(scores, alpha)
    shifted = scores.to(work) - top.masked_fill(empty, 0.0).to(work)
    return _normalize_rows(_solve_entmax_rows(shifted, alpha.to(work) - 1)).to(scores.dtype)


def choose_wide_dtype(rows: Rows, alpha: Column) -> torch.dtype:
    """Return the dtype for these α: above 2 weights and slopes span more than float32 holds."""
    if rows.dtype == torch.float64 or rows.device.type not in ("cpu", "cuda"):
        return rows.dtype
    return rows.dtype if is_cheap_to_read(rows) and not bool((alpha > 2).any()) else torch.float64


def is_cheap_to_read(tensor: Tensor) -> bool:
    """Return whether Python may branch on what a tensor holds without waiting for a device."""
    return tensor.is_cpu and tensor_memory.is_readable(tensor)


def _normalize_rows(weights: Rows) -> Rows:
    # One large weight among a million small ones costs a float32 sum six units in the last place, whatever its order.
    wide = weights.shape[-1] > HUGE and weights.device.type in ("cpu", "cuda")
    total = weights.sum(-1, keepdim=True, dtype=torch.float64 if wide else None).to(weights.dtype)
    return weights / torch.where(total == 0, 1.0, total)


def _solve_power_rows(shifted: Rows, rule: SimplexRule) -> Rows:
    """Return weights of sparsemax or entmax-1.5, by a fixed number of steps, or fewer if asking is cheap."""
    close, keys = 2 * torch.finfo(shifted.dtype).eps, shifted.shape[-1]
    least = 1 / keys if rule is SimplexRule.SPARSEMAX else keys**-0.5
    scaled = shifted if rule is SimplexRule.SPARSEMAX else shifted / 2
    unknown = torch.ones_like(shifted[..., :1])
    for _ in range(_count_steps(shifted)):
        weights, slopes = _raise_power(scaled + unknown, rule)
        total, slope = weights.sum(-1, keepdim=True), slopes.sum(-1, keepdim=True)
        excess = total - (1 if rule is SimplexRule.SPARSEMAX else total.sqrt())
        step = torch.where(slope > 0, excess / slope, 0.0)
        unknown = (unknown - step).clamp(min=least)
        if is_cheap_to_read(step) and bool((step.abs() <= close * unknown).all()):
            break
    return _raise_power(scaled + unknown, rule)[0]


def _raise_power(base: Rows, rule: SimplexRule) -> tuple[Rows, Rows]:
    """Return $[b + a u]_+^{1/a}$ and, up to a factor, its derivative, for `base` = $b + a u$."""
    base = base.clamp(min=0.0)
    return (base, (base > 0).to(base.dtype)) if rule is SimplexRule.SPARSEMAX else (base.square(), base)


def _count_steps(shifted: Rows) -> int:
    """Return steps enough for Newton's error, at least four times smaller each step, to fall from n² to rounding."""
    return ceil(log2(shifted.shape[-1] + 1) - log2(torch.finfo(shifted.dtype).eps) / 2) + 1


def _solve_entmax_rows(shifted: Rows, excess: Column) -> Rows:
    """Return weights for any α, from the two ends of a bracket around $m$."""
    low, high = _find_bracket(shifted, excess)
    most, least = (_raise_entmax_power(shifted, excess, end)[0] for end in (low, high))
    upper, lower = most.sum(-1, keepdim=True), least.sum(-1, keepdim=True)
    apart = upper > lower
    share = torch.where(apart, (1 - lower) / torch.where(apart, upper - lower, 1.0), 1.0).clamp(0.0, 1.0)
    return share * most + (1 - share) * least


def _find_bracket(shifted: Rows, excess: Column) -> tuple[Column, Column]:
    """Return two values of $m$: at the first the weights sum to at least one, at the second to at most one."""
    unit, keys = torch.finfo(shifted.dtype).eps, shifted.shape[-1]
    place = low = torch.zeros_like(shifted[..., :1])
    high, last = torch.full_like(low, log(keys) * (1 + 4 * unit)), torch.full_like(low, torch.inf)
    for _ in range(ceil(-log2(unit)) + 12):
        weights, slopes = _raise_entmax_power(shifted, excess, place)
        total, slope = weights.sum(-1, keepdim=True), slopes.sum(-1, keepdim=True)
        over = total.log()
        low, high = torch.where(over >= 0, place, low), torch.where(over >= 0, high, place)
        # An end far away would bring back, however small its part, scores that are not in the support.
        found = over.abs() <= 8 * unit
        low, high = torch.where(found, place, low), torch.where(found, place, high)
        done = (high - low <= 4 * unit * (1 + high)) | ~over.isfinite()
        if is_cheap_to_read(done) and bool(done.all()):
            break
        size = torch.maximum(over.abs() * total / slope, 2 * unit * (1 + place))
        next_place = place + size * over.sign()
        # By halves where Newton leaves the bracket or does not get slower.
        newton = (next_place > low) & (next_place < high) & (size <= last / 2)
        last = torch.where(newton, size, (high - low) / 2)
        place = torch.where(done, place, torch.where(newton, next_place, (low + high) / 2))
    return low, high


def _raise_entmax_power(shifted: Rows, excess: Column, place: Column) -> tuple[Rows, Rows]:
    """Return $e^{-m} [1 + c u]_+^{1/a}$ and that over $1 + c u$, for $a$ = `excess`, $m$ = `place`."""
    limit = log(torch.finfo(shifted.dtype).max) - 8  # below infinity: what equals the largest score stays
    change = excess * (excess * place).clamp(max=limit).exp() * shifted
    outside = (change <= -1) | (shifted == -torch.inf)  # written so that a NaN counts as inside, and shows
    change = torch.where(outside, 0.0, change)
    soft = excess == 0
    logarithm = torch.where(soft, shifted, change.log1p() / (excess + soft))
    weight = torch.where(outside, 0.0, (logarithm - place).exp())
    return weight, weight / (1 + change)
