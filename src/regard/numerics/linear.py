r"""Linear attention on features that are already mapped: the products reassociated, and no pair ever formed.

$$ o_i = \frac{\sum_j m_{ij} (q_i \cdot k_j) v_j}{\sum_j m_{ij} (q_i \cdot k_j)}
   = \frac{q_i S_i}{q_i \cdot z_i}, \quad S_i = \sum_j m_{ij} k_j v_j^\top, \quad z_i = \sum_j m_{ij} k_j $$

with $q$ = `query`, $k$ = `key`, $v$ = `value`, $m$ = what is allowed; the denominator is `totals`.
Katharopoulos et al. 2020, eq. 4-5 and 10-12. Where a total is 0, as in an empty row, the output and every
gradient are 0. Time and memory are linear in the length, forward and backward.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.shapes import Bool, Float

Queries = Float[Tensor, "*#lead L d"]
Keys = Float[Tensor, "*#lead S d"]
Values = Float[Tensor, "*#lead S e"]
Allowed = Bool[Tensor, "*#lead S"]

CHUNK = 64  # positions that meet as pairs; between chunks only the state passes


class State(NamedTuple):
    """All that later queries need to know of the keys so far: $S$ = `products` and $z$ = `keys`."""

    products: Float[Tensor, "*lead d e"]
    keys: Float[Tensor, "*lead d"]


class Read(NamedTuple):
    """What was read, and the row totals: with them any tile of the weights can be had later, see `tile`."""

    output: Float[Tensor, "*lead L e"]
    totals: Float[Tensor, "*lead L"]


def full(query: Queries, key: Keys, value: Values, allowed: Allowed | None = None) -> Read:
    """Every query reads every key that is allowed.

    >>> full(torch.ones(1, 2), torch.ones(3, 2), torch.tensor([[1.0], [2.0], [6.0]])).output
    tensor([[3.]])
    """
    return read(query, gather(key, value, allowed))


def causal(query: Queries, key: Keys, value: Values, allowed: Allowed | None = None) -> Read:
    """Query i of L reads keys 0 to S - L + i: the last query sits on the last key.

    >>> causal(torch.ones(3, 2), torch.ones(3, 2), torch.tensor([[1.0], [2.0], [6.0]])).output.flatten()
    tensor([1.0000, 1.5000, 3.0000])
    """
    key, value = _prepared(key, value, allowed)
    early = max(0, query.shape[-2] - key.shape[-2])  # queries before the first key: they read nothing
    past = max(0, key.shape[-2] - query.shape[-2])  # keys before the first query: all queries read them
    late = query[..., early:, :].to(key.dtype)
    sums = _running(late, key[..., past:, :], value[..., past:, :])
    if past:
        sums = sums + late @ (key[..., :past, :].mT @ value[..., :past, :])
    return _divided(pad(sums, (0, 0, early, 0)), query.dtype)


def gather(key: Keys, value: Values, allowed: Allowed | None = None) -> State:
    """The state after these keys, in float32 at least."""
    key, value = _prepared(key, value, allowed)
    products = key.mT @ value
    return State(products[..., :-1], products[..., -1])


def read(query: Queries, state: State) -> Read:
    """What queries make of a state."""
    exact = query.to(state.keys.dtype)
    return _divided(exact @ torch.cat([state.products, state.keys[..., None]], -1), query.dtype)


def step(
    query: Float[Tensor, "*#lead d"],
    key: Float[Tensor, "*#lead d"],
    value: Float[Tensor, "*#lead e"],
    state: State,
) -> tuple[Read, State]:
    """One position: the key joins the state, then the query reads it. The recurrent form of `causal`."""
    exact = key.to(state.keys.dtype)
    products = state.products + exact[..., :, None] * value[..., None, :].to(exact.dtype)
    later = State(products, state.keys + exact)
    output, totals = read(query[..., None, :], later)
    return Read(output[..., 0, :], totals[..., 0]), later


def tile(
    query: Queries,
    key: Keys,
    totals: Float[Tensor, "*#lead L"],
    allowed: Bool[Tensor, "*#lead #L #S"] | None = None,
) -> Float[Tensor, "*lead L S"]:
    """The weights of these queries and keys, given the totals of the queries' whole rows."""
    products = query.to(totals.dtype) @ key.to(totals.dtype).mT
    products = products if allowed is None else torch.where(allowed, products, 0.0)
    return _ratio(products, totals[..., None])


def _prepared(key: Keys, value: Values, allowed: Allowed | None) -> tuple[Tensor, Tensor]:
    """Zeros for what is not allowed, and a column of ones after the values, whose sum is the total."""
    dtype = torch.promote_types(torch.promote_types(key.dtype, value.dtype), torch.float32)
    key, value = key.to(dtype), pad(value.to(dtype), (0, 1), value=1.0)
    if allowed is None:
        return key, value
    return torch.where(allowed[..., None], key, 0.0), torch.where(allowed[..., None], value, 0.0)


def _divided(sums: Float[Tensor, "*lead L more"], dtype: torch.dtype) -> Read:
    return Read(_ratio(sums[..., :-1], sums[..., -1:]).to(dtype), sums[..., -1])


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    empty = below == 0
    return torch.where(empty, 0.0, above / torch.where(empty, 1.0, below))


def _running(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (tensor.expand(*lead, *tensor.shape[-2:]) for tensor in (query, key, value))
    return _run(query, key, value, False)


def _run(query: Tensor, key: Tensor, value: Tensor, reverse: bool) -> Tensor:
    sums: Tensor = (_Running if torch.compiler.is_compiling() else _RunningForward).apply(query, key, value, reverse)  # type: ignore[no-untyped-call]
    return sums


class _Running(torch.autograd.Function):
    r"""$o_i = \sum_{j \le i} (q_i \cdot k_j) v_j$, or over $j \ge i$ in `reverse`.

    Its gradients have the same form, so only the inputs are kept: the states are computed anew.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(query: Tensor, key: Tensor, value: Tensor, reverse: bool) -> Tensor:
        return _by_chunks(query, key, value, reverse)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:3])
        ctx.reverse = inputs[3]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        query, key, value = ctx.saved_tensors
        wanted, same, other = ctx.needs_input_grad, ctx.reverse, not ctx.reverse
        return (
            _run(grad, value, key, same) if wanted[0] else None,
            _run(value, grad, query, other) if wanted[1] else None,
            _run(key, query, grad, other) if wanted[2] else None,
            None,
        )


class _RunningForward(_Running):
    """The same with derivatives that are carried forward, which a compiler cannot trace."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _Running.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:3])

    @staticmethod
    def jvp(ctx: Any, *changes: Tensor | None) -> Tensor:
        total = torch.zeros_like(ctx.saved_tensors[2])
        for place, change in enumerate(changes[:3]):
            if change is not None:  # linear in each of the three
                query, key, value = (change if own == place else part for own, part in enumerate(ctx.saved_tensors))
                total = total + _run(query, key, value, ctx.reverse)
        return total


def _by_chunks(query: Tensor, key: Tensor, value: Tensor, reverse: bool) -> Tensor:
    length = query.shape[-2]
    if length == 0:
        return value.new_zeros(value.shape)
    query, key, value = (_chunked(tensor) for tensor in (query, key, value))
    pairs = query @ key.mT
    within = (pairs.triu() if reverse else pairs.tril()) @ value
    sums = key.mT @ value
    # The state before a chunk is the sum of those before it: shifted, since subtracting its own would round.
    if reverse:
        before = pad(sums[..., 1:, :, :].flip(-3).cumsum(-3).flip(-3), (0, 0, 0, 0, 0, 1))
    else:
        before = pad(sums[..., :-1, :, :].cumsum(-3), (0, 0, 0, 0, 1, 0))
    return (within + query @ before).flatten(-3, -2)[..., :length, :]


def _chunked(tensor: Tensor) -> Tensor:
    length = tensor.shape[-2]
    padded: Tensor = pad(tensor, (0, 0, 0, -length % CHUNK))
    chunks: Tensor = padded.unflatten(-2, (padded.shape[-2] // CHUNK, CHUNK))
    return chunks
