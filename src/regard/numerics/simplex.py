r"""From scores to weights: the normalizers as functions of a tensor, along its last axis.

Every member of the softmax family is $p_j = [(\alpha - 1) s_j - \tau]_+^{1/(\alpha-1)}$, with one threshold
$\tau$ for each row that makes it sum to one: softmax at $\alpha = 1$ (in the limit), entmax at 1.5, sparsemax
at 2 (Peters, Niculae & Martins 2019, eq. 10). `scores` holds $s$, the result is $p$. Nothing is sorted: see
threshold.py.

`allowed` is True where a score may count, and None where all may. A score that is not allowed is never read:
a NaN there leaks neither into a value nor into a gradient. A row with nothing allowed, or with nothing but
$-\infty$, has zero weights and zero gradient. A NaN or $+\infty$ that is allowed makes its row NaN. Half
precision is computed in float32 and rounded once.
"""

import math
from typing import Any

import torch
from torch import Tensor

from regard.numerics import simplex_rows
from regard.numerics.native import gate
from regard.numerics.simplex_gradients import gradients_of, slopes_by_alpha
from regard.numerics.threshold import Rule
from regard.shapes import Bool, Float

Scores = Float[Tensor, "..."]
Weights = Float[Tensor, "..."]
Allowed = Bool[Tensor, "..."]


def softmax(scores: Scores, allowed: Allowed | None = None) -> Weights:
    r"""Shares in proportion to the exponential.

    $$ p_j = e^{s_j} / \textstyle\sum_k e^{s_k} $$

    >>> softmax(torch.tensor([0.0, 0.0, 9.0]), torch.tensor([True, True, False]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return _normalize(scores, allowed, None, Rule.SOFTMAX)


def softmax_plus_one(scores: Scores, allowed: Allowed | None = None) -> Weights:
    r"""Softmax with one more score of 0 whose share goes to nobody (Miller 2023, *Attention is off by one*).

    $$ p_j = e^{s_j} / (1 + \textstyle\sum_k e^{s_k}) $$

    >>> softmax_plus_one(torch.zeros(3))
    tensor([0.2500, 0.2500, 0.2500])
    """
    return _normalize(scores, allowed, None, Rule.SOFTMAX_PLUS_ONE)


def sparsemax(scores: Scores, allowed: Allowed | None = None) -> Weights:
    r"""The nearest point of the simplex (Martins & Astudillo 2016, eq. 2).

    $$ p_j = [s_j - \tau]_+ $$

    >>> sparsemax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    return _normalize(scores, allowed, None, Rule.SPARSEMAX)


def entmax15(scores: Scores, allowed: Allowed | None = None) -> Weights:
    r"""Half way between softmax and sparsemax (Peters et al. 2019, eq. 10 with α = 1.5).

    $$ p_j = [s_j / 2 - \tau]_+^2 $$

    >>> entmax15(torch.tensor([2.0, 2.0, 0.0]))
    tensor([0.5000, 0.5000, 0.0000])
    """
    return _normalize(scores, allowed, None, Rule.ENTMAX15)


def entmax(scores: Scores, allowed: Allowed | None, alpha: float | Float[Tensor, "..."]) -> Weights:
    r"""The family from softmax (α = 1) over sparsemax (α = 2) to sparser still.

    $$ p_j = [(\alpha - 1) s_j - \tau]_+^{1 / (\alpha - 1)} $$

    with $\alpha$ = `alpha` ≥ 1, a number or a tensor that broadcasts over `(..., 1)`, which then gets
    its gradient, at α = 1 too (Correia, Niculae & Martins 2019, prop. 1).

    >>> entmax(torch.tensor([1.0, 0.5, -1.0]), None, 2.0)
    tensor([0.7500, 0.2500, 0.0000])
    """
    if not isinstance(alpha, Tensor):
        special = {1.0: Rule.SOFTMAX, 1.5: Rule.ENTMAX15, 2.0: Rule.SPARSEMAX}
        if alpha in special:
            return _normalize(scores, allowed, None, special[alpha])
        alpha = torch.tensor(alpha, dtype=torch.float64, device=scores.device)
    # Widened here and not inside: above α = 2 the gradient needs more digits of the weights than half precision has.
    exact = widened(scores)
    return _normalize(exact, allowed, alpha.to(scores.device, exact.dtype), Rule.ENTMAX).to(scores.dtype)


def sigmoid(scores: Scores, allowed: Allowed | None = None) -> Weights:
    r"""Each score for itself; nothing sums to one.

    $$ p_j = 1 / (1 + e^{-s_j}) $$

    >>> sigmoid(torch.zeros(2), torch.tensor([True, False]))
    tensor([0.5000, 0.0000])
    """
    exact = widened(scores)
    return torch.sigmoid(exact if allowed is None else torch.where(allowed, exact, -torch.inf)).to(scores.dtype)


def row_total(scores: Scores, allowed: Allowed | None = None) -> Weights:
    r"""Scores over their sum, and 0 where the sum is 0 (Katharopoulos et al. 2020, eq. 3).

    $$ p_j = s_j / \textstyle\sum_k s_k $$

    >>> row_total(torch.tensor([1.0, 3.0]))
    tensor([0.2500, 0.7500])
    """
    exact = widened(scores)
    exact = exact if allowed is None else torch.where(allowed, exact, 0.0)
    exact = exact * _room(exact)
    total = exact.sum(-1, keepdim=True)
    empty = total == 0
    none = empty if allowed is None else empty | ~allowed
    return torch.where(none, 0.0, exact / torch.where(empty, 1.0, total)).to(scores.dtype)


def _room(scores: Scores) -> Weights:
    """A power of two for each row that leaves room for its sum: 1 but for scores close to the largest number."""
    if scores.shape[-1] == 0:
        return torch.ones_like(scores)
    keys = 2.0 ** -math.ceil(math.log2(scores.shape[-1] + 1))
    top = scores.detach().abs().amax(-1, keepdim=True)
    return torch.where(top > keys * torch.finfo(scores.dtype).max, keys, 1.0).to(scores.dtype)


def widened(scores: Scores) -> Scores:
    """In at least float32: half precision is computed there and rounded once."""
    return scores.to(_working(scores))


def _working(scores: Scores) -> torch.dtype:
    return torch.float32 if scores.dtype in (torch.float16, torch.bfloat16) else scores.dtype


def _normalize(scores: Scores, allowed: Allowed | None, alpha: Tensor | None, rule: Rule) -> Weights:
    """Bring all to one shape, outside of the function, so that autograd sums what was broadcast."""
    if allowed is not None and allowed.shape != scores.shape:
        shape = torch.broadcast_shapes(scores.shape, allowed.shape)
        scores, allowed = scores.expand(shape), allowed.expand(shape)
    if alpha is not None:
        shape = torch.broadcast_shapes((*scores.shape[:-1], 1), alpha.shape)
        scores, alpha = scores.expand(*shape[:-1], scores.shape[-1]), alpha.expand(shape)
        allowed = None if allowed is None else allowed.expand(scores.shape)
    if scores.numel() == 0:
        return scores.clone()
    compiling = torch.compiler.is_compiling()
    transformed = not compiling and gate.is_mapped()
    if not (compiling or transformed or torch.is_grad_enabled()):
        return _forward(scores, allowed, alpha, rule)
    function = _NormalizeTransformed if transformed else _Normalize
    weights: Tensor = function.apply(scores, allowed, alpha, rule)  # type: ignore[no-untyped-call]
    return weights


class _Normalize(torch.autograd.Function):
    """Weights forward; backward from the weights alone, so that the scores need not be kept."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: Rule) -> Tensor:
        weights = _forward(scores, allowed, alpha, rule)
        ctx.rule = rule
        ctx.save_for_backward(weights, alpha)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor | None, None]:
        return _backward(ctx, grad)


class _NormalizeTransformed(torch.autograd.Function):
    """The same for torch.func. Its way to call a function costs 25 µs more, which a decoder would pay at each step."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: Rule) -> Tensor:
        return _forward(scores, allowed, alpha, rule)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.rule = inputs[3]
        ctx.save_for_backward(output, inputs[2])
        ctx.save_for_forward(output, inputs[2])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor | None, None]:
        return _backward(ctx, grad)

    @staticmethod
    def jvp(ctx: Any, by_scores: Tensor | None, _allowed: None, by_alpha: Tensor | None, _rule: None) -> Tensor:
        weights, alpha = ctx.saved_tensors
        work, change = _working(weights), torch.zeros_like(weights)
        exact = weights.to(work)
        if by_scores is not None:  # the matrix of derivatives is symmetric: forward is the same as backward
            change = change + gradients_of(exact, by_scores.to(work), alpha, ctx.rule)[0]
        if by_alpha is not None:
            change = change + slopes_by_alpha(exact, alpha) * by_alpha
        return change.to(weights.dtype)


def _forward(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: Rule) -> Tensor:
    return simplex_rows.weights(widened(scores), allowed, alpha, rule).to(scores.dtype)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, Tensor | None, None]:
    weights, alpha = ctx.saved_tensors
    work = _working(weights)
    by_scores, by_alpha = simplex_rows.gradients(weights.to(work), grad.to(work), alpha, ctx.rule)
    return by_scores.to(grad.dtype), None, by_alpha, None
