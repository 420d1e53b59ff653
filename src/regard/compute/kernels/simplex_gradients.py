r"""Gradients of the softmax family in plain torch, from the weights alone.

$$ \partial L / \partial s_j = q_j (g_j - \bar g), \qquad \bar g = \textstyle\sum_k q_k g_k / \sum_k q_k $$

with $g$ = `grad` and $q_j = p_j^{2-\alpha}$: Peters et al. 2019, prop. 2. By α (Correia et al. 2019, prop. 1), with
$a = \alpha - 1$ and written so that nothing cancels as α → 1:

$$ \partial L / \partial \alpha = -\sum_j (g_j - \bar g) p_j \log^2 p_j \varphi(-a \log p_j), \qquad
   \varphi(y) = (e^y - 1 - y) / y^2 $$

Above α = 2 the slopes $q$ of small weights may exceed every number, while their ratios and what they leave of a
gradient do not. So there, with $g_0$ the gradient at the steepest weight and $\rho = q / \max q$,

$$ \partial L / \partial s_j = q_j (g_j - g_0) - \rho_j \textstyle\sum_k q_k (g_k - g_0) / \sum_k \rho_k $$

$$ \partial L / \partial \alpha = \sum_j (g_j - \bar g) p_j (1 - a \log p_j) / a^2 $$

which is the same since $\sum_j q_j (g_j - \bar g) = 0$. Where the weight is 0, the gradient that arrives is never
read. All of it is made of torch's operations, so that it may be differentiated again.
"""

from math import log

import torch
from torch import Tensor

from regard.compute.kernels.threshold import Column, Rows, SimplexRule, choose_wide_dtype

LIMIT = 0.85  # how much of the range of exponents a slope may take, so that a sum of many stays finite


def compute_row_gradients(
    weights: Rows, grad: Rows, alpha: Column | None, rule: SimplexRule
) -> tuple[Rows, Column | None]:
    """Return the gradients of scores and of alpha."""
    live = weights != 0
    grad = torch.where(live, grad, 0.0)
    if rule in (SimplexRule.SOFTMAX, SimplexRule.SOFTMAX_PLUS_ONE):
        return weights * (grad - (weights * grad).sum(-1, keepdim=True)), None
    if alpha is None:
        some = torch.where(live, weights, 1.0)
        slope = torch.where(live, some.sqrt() if rule is SimplexRule.ENTMAX15 else 1.0, 0.0)
        return slope * (grad - (slope * grad).sum(-1, keepdim=True) / _replace_zeros(slope.sum(-1, keepdim=True))), None
    work = choose_wide_dtype(weights, alpha)
    by_scores, by_alpha = _compute_entmax_gradients(weights.to(work), grad.to(work), alpha.to(work))
    return by_scores.to(weights.dtype), by_alpha.to(weights.dtype)


def differentiate_by_alpha(weights: Rows, alpha: Column) -> Rows:
    """Return the derivative of each weight by alpha."""
    work = choose_wide_dtype(weights, alpha)
    exact, live, own = weights.to(work), weights != 0, alpha.to(work)
    logarithm = torch.where(live, exact, 1.0).log()
    shares = torch.where(live, torch.where(live, (2 - own) * logarithm, -torch.inf).softmax(-1), 0.0)
    curve = _compute_curve(exact, logarithm, own - 1)
    return (shares * curve.sum(-1, keepdim=True) - curve).to(weights.dtype)


def _replace_zeros(total: Column) -> Column:
    return torch.where(total == 0, 1.0, total)


def _compute_entmax_gradients(weights: Rows, grad: Rows, alpha: Column) -> tuple[Rows, Column]:
    live = weights != 0
    logarithm = torch.where(live, weights, 1.0).log()
    exponent = (2 - alpha) * logarithm
    # The result does not depend on these two, so neither does its derivative.
    steepest, where = torch.where(live, exponent.detach(), -torch.inf).max(-1, keepdim=True)
    steepest = torch.where(steepest == -torch.inf, 0.0, steepest)
    own = torch.where(live, grad - grad.detach().gather(-1, where), 0.0)
    shares = torch.where(live, (exponent - steepest).exp(), 0.0)
    shares = shares / _replace_zeros(shares.sum(-1, keepdim=True))
    most = LIMIT * log(torch.finfo(weights.dtype).max)
    taken = (steepest - most).clamp(min=0.0)
    pulls = torch.where(live, (exponent - taken).exp(), 0.0) * own
    by_scores = (pulls - shares * pulls.sum(-1, keepdim=True)) * taken.clamp(max=most).exp()
    centered = own - (shares * own).sum(-1, keepdim=True)
    return by_scores, -(_compute_curve(weights, logarithm, alpha - 1) * centered).sum(-1, keepdim=True)


def _compute_curve(weights: Rows, logarithm: Rows, excess: Column) -> Rows:
    """Return the part of each weight's derivative by α that is not a multiple of its slope."""
    sharp = excess > 1
    some = torch.where(sharp, excess, 1.0)
    far = weights * (some * logarithm - 1) / some.square()
    near = weights * logarithm.square() * _second_order(torch.where(sharp, 0.0, -excess * logarithm))
    return torch.where(sharp, far, near)


def _second_order(y: Tensor) -> Tensor:
    r"""Return $(e^y - 1 - y) / y^2$, by its series if the difference would cancel."""
    small = y.abs() < 0.5
    near, far = torch.where(small, y, 0.0), torch.where(small, 1.0, y)
    series = torch.ones_like(y)
    for term in range(16, 2, -1):
        series = series * near / term + 1
    return torch.where(small, series / 2, (far.expm1() - far) / far.square())
