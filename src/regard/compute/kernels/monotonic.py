r"""Monotonic alignment: each query goes on from the key where the query before it stopped.

At key $j$ query $i$ stops with probability $p_{ij} = \sigma(s_{ij})$ and otherwise goes on to the next key.
The expected weights are the probabilities of where it stops (Raffel et al. 2017, eq. 8-11):

$$ \alpha_{ij} = p_{ij} q_{ij}, \qquad q_{ij} = (1 - p_{i,j-1}) q_{i,j-1} + \alpha_{i-1,j} $$

with $s$ = `scores`, $\alpha$ = the weights, $\alpha_{i-1}$ = `previous` (at first all on the first key),
and $q_{ij}$ the probability that query $i$ gets as far as key $j$. A key that is not allowed is passed
over: $p_{ij} = 0$. A query that runs off the last key attends to nothing, and so does every one after: rows sum to
1 or less.

The paper divides by a cumulative product, which underflows (0/0 as soon as some p is 1), and its logarithm loses
digits far along a row. Here the recurrence is run as it stands: see alignment.py.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.algebra.shapes import Bool, Float, widen
from regard.compute.kernels.alignment import align

Scores = Float[Tensor, "*#lead L S"]
Allowed = Bool[Tensor, "*#lead #L #S"]
Previous = Float[Tensor, "*#lead S"]
Weights = Float[Tensor, "*lead L S"]


def align_expected(scores: Scores, allowed: Allowed | None = None, previous: Previous | None = None) -> Weights:
    """Return the expected weights, for training. Stepping with the last weights as `previous` gives the same.

    >>> align_expected(torch.tensor([[0.0, 0.0], [0.0, 50.0]]))
    tensor([[0.5000, 0.2500],
            [0.2500, 0.5000]])
    """
    exact = _mask_scores(scores, allowed)
    stop, go_on = torch.sigmoid(exact), torch.sigmoid(-exact)
    lead, start = _find_start(exact, previous)
    weights = align(stop.expand(*lead, -1, -1), go_on.expand(*lead, -1, -1), start)
    # Not for the value: a gradient that arrives where nothing is allowed ends here.
    return torch.where(exact == -torch.inf, 0.0, weights).to(scores.dtype)


def align_hard(scores: Scores, allowed: Allowed | None = None, previous: Previous | None = None) -> Weights:
    """Return hard weights, for decoding: all on the first key at or after the previous choice with p ≥ ½, if any.

    Raffel et al. 2017, algorithm 1. `previous` has a 1 at the choice before, or nothing if there was none.

    >>> align_hard(torch.tensor([[-1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]))
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    exact = _mask_scores(scores, allowed)
    lead, before = _find_start(exact, previous)
    rows = []
    for stop in (exact >= 0).unbind(-2):
        candidate = stop & (before.cumsum(-1) > 0)
        before = (candidate & (candidate.cumsum(-1) == 1)).to(exact.dtype)
        rows.append(before)
    return torch.stack(rows, -2).to(scores.dtype) if rows else scores.new_zeros(*lead, *exact.shape[-2:])


def attend_chunkwise(weights: Scores, scores: Scores, width: int, allowed: Allowed | None = None) -> Weights:
    r"""Attend softly to the `width` keys up to where a monotonic query stopped (Chiu & Raffel 2018).

    $$ \beta_{ij} = \sum_{k=j}^{j+w-1} \alpha_{ik} \frac{e^{u_{ij}}}{\sum_{l=k-w+1}^{k} e^{u_{il}}} $$

    with $\alpha$ = `weights`, expected or hard, $u$ = `scores`, $w$ = `width`. Each chunk has its own
    maximum, so that scores far apart in one row do not underflow. Time O(S·w), memory O(S).

    >>> attend_chunkwise(torch.tensor([[0.0, 0.0, 1.0]]), torch.zeros(1, 3), 2)
    tensor([[0.0000, 0.5000, 0.5000]])
    """
    exact = _mask_scores(scores, allowed)
    shape = torch.broadcast_shapes(weights.shape, exact.shape)
    weights, exact = weights.to(exact.dtype).expand(shape), exact.expand(shape)
    mixed: Tensor = (_Chunks if torch.compiler.is_compiling() else _ChunksForward).apply(weights, exact, width)  # type: ignore[no-untyped-call]
    return mixed.to(scores.dtype)


def _mask_scores(scores: Scores, allowed: Allowed | None) -> Scores:
    """Return scores in at least float32, and -inf where not allowed."""
    exact = widen(scores)
    return exact if allowed is None else torch.where(allowed, exact, -torch.inf)


def _find_start(exact: Scores, previous: Previous | None) -> tuple[torch.Size, Tensor]:
    """Return the common leading axes, and where the queries start: on the first key unless `previous` is given."""
    if previous is None:
        previous = (torch.arange(exact.shape[-1], device=exact.device) == 0).to(exact.dtype)
    lead = torch.broadcast_shapes(exact.shape[:-2], previous.shape[:-1])
    return lead, previous.to(exact.dtype).expand(*lead, exact.shape[-1])


class _Chunks(torch.autograd.Function):
    """See `attend_chunkwise`. Each offset within a chunk is taken in turn, and none is kept for the backward."""

    generate_vmap_rule = True

    @staticmethod
    def forward(weights: Tensor, scores: Tensor, width: int) -> Tensor:
        total, mixed = _sum_chunks(scores, width), torch.zeros_like(scores)
        for offset in _list_offsets(scores, width):
            mixed = mixed + _compute_share(scores, total, offset) * _shift(weights, -offset, 0.0)
        return mixed

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], inputs[1], output)
        ctx.width = inputs[2]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        weights, scores, mixed = ctx.saved_tensors
        grad = torch.where(scores == -torch.inf, 0.0, grad)  # what arrives where nothing is allowed is never read
        total, by_weights = _sum_chunks(scores, ctx.width), torch.zeros_like(grad)
        for offset in _list_offsets(scores, ctx.width):
            by_weights = by_weights + _shift(_compute_share(scores, total, offset) * grad, offset, 0.0)
        by_scores, pull = grad * mixed, weights * by_weights
        for offset in _list_offsets(scores, ctx.width):
            by_scores = by_scores - _compute_share(scores, total, offset) * _shift(pull, -offset, 0.0)
        return by_weights, by_scores, None


class _ChunksForward(_Chunks):
    """The same with derivatives that are carried forward, which a compiler cannot trace."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _Chunks.setup_context(ctx, inputs, output)
        ctx.save_for_forward(inputs[0], inputs[1])

    @staticmethod
    def jvp(ctx: Any, by_weights: Tensor | None, by_scores: Tensor | None, _width: None) -> Tensor:
        weights, scores = ctx.saved_tensors
        by_weights = torch.zeros_like(weights) if by_weights is None else by_weights
        by_scores = torch.zeros_like(scores) if by_scores is None else by_scores
        total, by_total, mixed = _sum_chunks(scores, ctx.width), torch.zeros_like(scores), torch.zeros_like(scores)
        for offset in _list_offsets(scores, ctx.width):
            by_total = by_total + _shift(_compute_share(scores, total, offset) * by_scores, offset, 0.0)
        for offset in _list_offsets(scores, ctx.width):
            change = (by_scores - _shift(by_total, -offset, 0.0)) * _shift(weights, -offset, 0.0)
            mixed = mixed + _compute_share(scores, total, offset) * (change + _shift(by_weights, -offset, 0.0))
        return mixed


def _list_offsets(scores: Tensor, width: int) -> range:
    return range(min(width, scores.shape[-1]))


def _compute_share(scores: Tensor, total: Tensor, offset: int) -> Tensor:
    """Return each key's share of the chunk that ends `offset` keys after it."""
    return (scores - _shift(total, -offset, torch.inf)).exp()


def _sum_chunks(scores: Tensor, width: int) -> Tensor:
    """Return the log-sum-exp of the chunk that ends at each key, +inf if nothing in it is allowed."""
    top = scores
    for offset in _list_offsets(scores, width):
        top = torch.maximum(top, _shift(scores, offset, -torch.inf))
    empty = top == -torch.inf
    top = torch.where(empty, 0.0, top)
    total = empty.to(scores.dtype)
    for offset in _list_offsets(scores, width):
        total = total + (_shift(scores, offset, -torch.inf) - top).exp()
    return torch.where(empty, torch.inf, top + total.log())


def _shift(row: Tensor, by: int, fill: float) -> Tensor:
    """Return the row moved to the right, or to the left if `by` is below 0."""
    size = row.shape[-1]
    return pad(row, (by, 0), value=fill)[..., :size] if by >= 0 else pad(row, (0, -by), value=fill)[..., -by:]
