r"""The softmax family in plain torch: what every device runs, and what the native rows are tested against.

With $u_j = s_j - \max s$ and $a = \alpha - 1$ the weights are $p_j = [1 + a (u_j - t)]_+^{1/a}$, and the
threshold $t$ is the root of

$$ F(t) = (\lVert [1 + a (u - t)]_+ \rVert_{1/a} - 1) / a. $$

$F$ is a norm of a convex function, so for $a \le 1$ it is convex: Newton from $t = 0$ never passes the root,
and $F \cdot |F'|$ falls at least fourfold a step. For $a > 1$ a bracket keeps it safe.
"""

from enum import IntEnum
from math import ceil, log, log2

import torch
from torch import Tensor

from regard.shapes import Bool, Float


class Rule(IntEnum):
    """Which member of the family. The numbers are known to native/simplex.cpp."""

    SOFTMAX = 0
    SOFTMAX_PLUS_ONE = 1
    SPARSEMAX = 2
    ENTMAX15 = 3
    ENTMAX = 4


Rows = Float[Tensor, "*lead n"]
Mask = Bool[Tensor, "*#lead #n"]
Column = Float[Tensor, "*lead 1"]


def weights_of(scores: Rows, allowed: Mask | None, alpha: Column | None, rule: Rule) -> Rows:
    r"""Weights from scores; 0 where not allowed, at $-\infty$, and in a row that has nothing else."""
    if allowed is None:
        return _weights(scores, alpha, rule)
    weights = _weights(torch.where(allowed, scores, -torch.inf), alpha, rule)
    return torch.where(allowed, weights, 0.0)  # a NaN that is allowed spoils its row, but not this promise


def _weights(scores: Rows, alpha: Column | None, rule: Rule) -> Rows:
    top = scores.amax(-1, keepdim=True)
    empty = top == -torch.inf
    if rule is Rule.SOFTMAX:
        return torch.softmax(scores, -1).masked_fill(empty, 0.0)
    if rule is Rule.SOFTMAX_PLUS_ONE:
        powers = (scores - top.clamp(min=0.0)).exp()
        return powers / (powers.sum(-1, keepdim=True) + (-top.clamp(min=0.0)).exp())
    shifted = scores - top.masked_fill(empty, 0.0)
    excess = alpha - 1 if alpha is not None else 1.0 if rule is Rule.SPARSEMAX else 0.5
    return _power(shifted - _threshold(shifted, excess, rule), excess, rule)[0]


def _power(distance: Rows, excess: Column | float, rule: Rule) -> tuple[Rows, Rows]:
    """$[1 + a x]_+^{1/a}$ and its derivative by $x$, for $x$ = `distance` and $a$ = `excess`."""
    if rule is Rule.SPARSEMAX:
        weight = (distance + 1).clamp(min=0.0)
        return weight, (weight > 0).to(weight.dtype)
    if rule is Rule.ENTMAX15:
        base = (distance / 2 + 1).clamp(min=0.0)
        return base.square(), base
    change = excess * distance
    outside = (change <= -1) | (distance == -torch.inf)  # said so that a NaN is inside, and shows
    change = torch.where(outside, 0.0, change)
    soft = torch.as_tensor(excess == 0)
    logarithm = torch.where(soft, distance, change.log1p() / (excess + soft))
    weight = torch.where(outside, 0.0, logarithm.exp())
    return weight, weight / (1 + change)


def _threshold(shifted: Rows, excess: Column | float, rule: Rule) -> Column:
    """The root of $F$, by a fixed number of steps, or fewer where it costs little to ask if all are done."""
    low = torch.zeros_like(shifted[..., :1])
    close = 2 * torch.finfo(shifted.dtype).eps
    # Where all scores are equal the root is the upper bound itself: leave Newton room to land on it.
    threshold, high = low, (1 + 8 * close) * _ratio(torch.full_like(low, log(shifted.shape[-1])), excess)
    for _ in range(_turns(shifted, rule)):
        weights, slopes = _power(shifted - threshold, excess, rule)
        total, slope = weights.sum(-1, keepdim=True), slopes.sum(-1, keepdim=True)
        step = torch.where(slope > 0, _step(total, excess, rule) / slope, 0.0)
        low, high = torch.where(total > 1, threshold, low), torch.where(total > 1, high, threshold)
        done = step.abs() <= close * (1 + threshold)
        newton = threshold + step
        inside = done | ((newton > low) & (newton < high))
        threshold = torch.where(inside, newton, (low + high) / 2)
        if _may_ask(done) and bool(done.all()):
            break
    return threshold


def _may_ask(tensor: Tensor) -> bool:
    """Whether Python may branch on what a tensor holds at no great cost."""
    traced = torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return tensor.device.type == "cpu" and not traced


def _step(total: Column, excess: Column | float, rule: Rule) -> Column:
    """Newton's step on $F$, before it is divided by the sum of the slopes."""
    if rule is Rule.SPARSEMAX:
        return total - 1
    if rule is Rule.ENTMAX15:
        return 2 * (total - total.sqrt())
    return total * _ratio(total.log(), excess)


def _ratio(logarithm: Tensor, excess: Tensor | float) -> Tensor:
    r"""$(1 - e^{-a x}) / a$, which is $x$ at $a = 0$, for $x$ = `logarithm`."""
    soft = excess == 0
    return logarithm * soft - torch.expm1(-excess * logarithm) / (excess + soft)


def _turns(shifted: Rows, rule: Rule) -> int:
    r"""Steps enough for $F \cdot |F'|$ to fall from $n^2$ to rounding error, or a bracket to shrink to it."""
    bits = -log2(torch.finfo(shifted.dtype).eps)
    return ceil(log2(shifted.shape[-1] + 1) + (bits if rule is Rule.ENTMAX else bits / 2)) + 1


def gradients_of(weights: Rows, grad: Rows, alpha: Column | None, rule: Rule) -> tuple[Rows, Column | None]:
    r"""Gradients by scores and by alpha, from the weights alone.

    $$ \partial L / \partial s_j = q_j (g_j - \bar g) $$

    $$ \partial L / \partial \alpha = -\sum_j (g_j - \bar g) p_j \log^2 p_j \varphi((1 - \alpha) \log p_j) $$

    with $g$ = `grad`, $q_j = p_j^{2-\alpha}$, $\bar g = \sum q g / \sum q$ and
    $\varphi(y) = (e^y - 1 - y) / y^2$.
    Peters et al. 2019, prop. 2, and Correia et al. 2019, prop. 1, written so that nothing cancels as α → 1.
    Where the weight is 0, the gradient that arrives is never read.
    """
    live = weights != 0
    grad = torch.where(live, grad, 0.0)
    if rule in (Rule.SOFTMAX, Rule.SOFTMAX_PLUS_ONE):
        return weights * (grad - (weights * grad).sum(-1, keepdim=True)), None
    some = torch.where(live, weights, 1.0)
    slope = torch.where(live, _slope(some, alpha, rule), 0.0)
    total = slope.sum(-1, keepdim=True)
    centered = grad - (slope * grad).sum(-1, keepdim=True) / torch.where(total == 0, 1.0, total)
    if alpha is None:
        return slope * centered, None
    logarithm = some.log()
    curve = weights * logarithm.square() * _second_order((1 - alpha) * logarithm)
    return slope * centered, -(curve * centered).sum(-1, keepdim=True)


def _slope(weights: Rows, alpha: Column | None, rule: Rule) -> Rows:
    if alpha is not None:
        return weights ** (2 - alpha)
    return weights.sqrt() if rule is Rule.ENTMAX15 else torch.ones_like(weights)


def _second_order(y: Tensor) -> Tensor:
    r"""$(e^y - 1 - y) / y^2$, by its series where the difference would cancel."""
    small = y.abs() < 0.5
    near, far = torch.where(small, y, 0.0), torch.where(small, 1.0, y)
    series = torch.ones_like(y)
    for term in range(16, 2, -1):
        series = series * near / term + 1
    return torch.where(small, series / 2, (far.expm1() - far) / far.square())
