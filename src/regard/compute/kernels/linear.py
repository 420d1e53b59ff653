r"""Linear attention on features that are already mapped: the products reassociated, and no pair ever formed.

$$ o_i = \frac{\sum_j m_{ij} (q_i \cdot k_j) v_j}{\sum_j m_{ij} (q_i \cdot k_j)}
   = \frac{q_i S_i}{q_i \cdot z_i}, \quad S_i = \sum_j m_{ij} k_j v_j^\top, \quad z_i = \sum_j m_{ij} k_j $$

with $q$ = `query`, $k$ = `key`, $v$ = `value`, $m$ = what is allowed; the denominator is `totals`.
Katharopoulos et al. 2020, eq. 4-5 and 10-12. If a total is 0, as in an empty row, the output and every
gradient are 0. Time and memory are linear in the length, forward and backward.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.algebra.shapes import Bool, Float

Queries = Float[Tensor, "*#lead L d"]
Keys = Float[Tensor, "*#lead S d"]
Values = Float[Tensor, "*#lead S e"]
Allowed = Bool[Tensor, "*#lead S"]

CHUNK = 64  # positions that meet as pairs; between chunks only the state passes


class LinearOutput(NamedTuple):
    """The output, and the row totals: a weight is its product over the total of its row."""

    output: Float[Tensor, "*lead L e"]
    totals: Float[Tensor, "*lead L"]


def attend_full(query: Queries, key: Keys, value: Values, allowed: Allowed | None = None) -> LinearOutput:
    """Attend from every query to every key that is allowed.

    >>> attend_full(torch.ones(1, 2), torch.ones(3, 2), torch.tensor([[1.0], [2.0], [6.0]])).output
    tensor([[3.]])
    """
    key, value = _prepare(key, value, allowed)
    return _divide_sums(query.to(key.dtype) @ (key.mT @ value), query.dtype)


def attend_causal(query: Queries, key: Keys, value: Values, allowed: Allowed | None = None) -> LinearOutput:
    """Attend from query i of L to the keys 0 to S - L + i: the last query sits on the last key.

    >>> attend_causal(torch.ones(3, 2), torch.ones(3, 2), torch.tensor([[1.0], [2.0], [6.0]])).output.flatten()
    tensor([1.0000, 1.5000, 3.0000])
    """
    key, value = _prepare(key, value, allowed)
    early = max(0, query.shape[-2] - key.shape[-2])  # queries before the first key: they read nothing
    past = max(0, key.shape[-2] - query.shape[-2])  # keys before the first query: all queries read them
    late = query[..., early:, :].to(key.dtype)
    sums = _run_causal(late, key[..., past:, :], value[..., past:, :])
    if past:
        sums = sums + late @ (key[..., :past, :].mT @ value[..., :past, :])
    return _divide_sums(pad(sums, (0, 0, early, 0)), query.dtype)


def _prepare(key: Keys, value: Values, allowed: Allowed | None) -> tuple[Tensor, Tensor]:
    """Return keys, zero where not allowed, and values with a column of ones, whose sum is the total."""
    dtype = torch.promote_types(torch.promote_types(key.dtype, value.dtype), torch.float32)
    key, value = key.to(dtype), pad(value.to(dtype), (0, 1), value=1.0)
    if allowed is None:
        return key, value
    return torch.where(allowed[..., None], key, 0.0), torch.where(allowed[..., None], value, 0.0)


def _divide_sums(sums: Float[Tensor, "*lead L more"], dtype: torch.dtype) -> LinearOutput:
    return LinearOutput(_divide_or_zero(sums[..., :-1], sums[..., -1:]).to(dtype), sums[..., -1])


def _divide_or_zero(above: Tensor, below: Tensor) -> Tensor:
    empty = below == 0
    return torch.where(empty, 0.0, above / torch.where(empty, 1.0, below))


def _run_causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (tensor.expand(*lead, *tensor.shape[-2:]) for tensor in (query, key, value))
    return _apply_running_sums(query, key, value, False)


def _apply_running_sums(query: Tensor, key: Tensor, value: Tensor, reverse: bool) -> Tensor:
    sums: Tensor = (_RunningSums if torch.compiler.is_compiling() else _RunningSumsForward).apply(
        query, key, value, reverse
    )  # type: ignore[no-untyped-call]
    return sums


class _RunningSums(torch.autograd.Function):
    r"""$o_i = \sum_{j \le i} (q_i \cdot k_j) v_j$, or over $j \ge i$ in `reverse`.

    Its gradients have the same form, so only the inputs are kept: the states are computed anew.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(query: Tensor, key: Tensor, value: Tensor, reverse: bool) -> Tensor:
        return _sum_by_chunks(query, key, value, reverse)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:3])
        ctx.reverse = inputs[3]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        query, key, value = ctx.saved_tensors
        wanted, same, other = ctx.needs_input_grad, ctx.reverse, not ctx.reverse
        return (
            _apply_running_sums(grad, value, key, same) if wanted[0] else None,
            _apply_running_sums(value, grad, query, other) if wanted[1] else None,
            _apply_running_sums(key, query, grad, other) if wanted[2] else None,
            None,
        )


class _RunningSumsForward(_RunningSums):
    """The same with derivatives that are carried forward, which a compiler cannot trace."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _RunningSums.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:3])

    @staticmethod
    def jvp(ctx: Any, *changes: Tensor | None) -> Tensor:
        total = torch.zeros_like(ctx.saved_tensors[2])
        for place, change in enumerate(changes[:3]):
            if change is not None:  # linear in each of the three
                query, key, value = (change if own == place else part for own, part in enumerate(ctx.saved_tensors))
                total = total + _apply_running_sums(query, key, value, ctx.reverse)
        return total


def _sum_by_chunks(query: Tensor, key: Tensor, value: Tensor, reverse: bool) -> Tensor:
    length = query.shape[-2]
    if length == 0:
        return value.new_zeros(value.shape)
    query, key, value = (_split_chunks(tensor) for tensor in (query, key, value))
    pairs = query @ key.mT
    within = (pairs.triu() if reverse else pairs.tril()) @ value
    sums = key.mT @ value
    # The state before a chunk is the sum of those before it: shifted, since subtracting its own would round.
    if reverse:
        before = pad(sums[..., 1:, :, :].flip(-3).cumsum(-3).flip(-3), (0, 0, 0, 0, 0, 1))
    else:
        before = pad(sums[..., :-1, :, :].cumsum(-3), (0, 0, 0, 0, 1, 0))
    return (within + query @ before).flatten(-3, -2)[..., :length, :]


def _split_chunks(tensor: Tensor) -> Tensor:
    length = tensor.shape[-2]
    padded: Tensor = pad(tensor, (0, 0, 0, -length % CHUNK))
    chunks: Tensor = padded.unflatten(-2, (padded.shape[-2] // CHUNK, CHUNK))
    return chunks
