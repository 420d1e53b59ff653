r"""Hard attention without a table: the key of the largest product for each query.

$$ o_i = v_{j_i}, \qquad j_i = \operatorname{argmax}_{j \in A_i} q_i \cdot k_j $$

with $A_i$ the keys that `allowed` says query $i$ may see. The first of equal products is taken; a query that sees
nothing gives zeros. The loop (`native/largest.cpp`) keeps products in registers and reads one value for each query.
"""

import ctypes
from functools import partial
from typing import Any, NamedTuple

import torch

from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.compute.kernels import native
from regard.compute.kernels.few_queries import check_fit
from regard.compute.kernels.flash import explicit_gradients, explicit_weights, flash_attention, flash_attention_backward
from regard.compute.kernels.fused import _pad_to_equal_widths, reshape_to_four_axes
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX, find_library


class Choice(NamedTuple):
    """The values that were chosen, and their keys; −1 if a query sees none."""

    output: Float[Tensor, "*lead query value"]
    keys: Int[Tensor, "*lead query"]


def find_largest(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    allowed: Bool[Tensor, "*#lead #query #key"] | None = None,
    *,
    causal: bool = False,
) -> Choice | None:
    """Return the choice, without a gradient; None if there is no kernel for it, or if a product is not finite.

    `causal`: the last query sees all keys, the one before it all but the last.
    """
    check_fit(query, key, value, allowed)
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    size = lead.numel() * query.shape[-2] * key.shape[-2]
    library = find_library(query, key, value, allowed, size=size) if size else None
    if library is None:
        return None
    inputs = [tensor_memory.make_rows_contiguous(reshape_to_four_axes(t.detach(), lead)) for t in (query, key, value)]
    if allowed is not None:  # by key, so that neighbors in a row are the queries that the loop takes together
        allowed = allowed.expand(*allowed.shape[:-2], query.shape[-2], key.shape[-2]).mT.contiguous()
        allowed = reshape_to_four_axes(allowed, lead)
    output = query.new_empty(*lead, query.shape[-2], value.shape[-1])
    index = torch.empty(*lead, query.shape[-2], dtype=torch.int64)
    last = key.shape[-2] - (query.shape[-2] if causal else 0)
    failed = _call(library, inputs, allowed, last, Choice(output, index))
    return None if failed else Choice(output, index)


def _call(library: native.Library, inputs: list[Tensor], allowed: Tensor | None, last: int, made: Choice) -> int:
    """Run the loop; `last` is the last key that the first query may see. Return 1 if a product is not finite."""
    query, key, value = inputs
    sizes = (*query.shape[:3], key.shape[-2], query.shape[-1], value.shape[-1])
    steps = [step for tensor in (*inputs, query if allowed is None else allowed) for step in tensor.stride()[:3]]
    kinds = (native.SIZE, *(native.POINTER,) * 6, native.SIZE, native.POINTER, native.POINTER)
    run = library.function(f"regard_largest_{SUFFIX[query.dtype]}", *kinds)
    numbers: Any = ctypes.c_int64
    layout = (numbers * 6)(*sizes), (numbers * 12)(*steps)
    addresses = map(tensor_memory.get_strided_address, (*inputs, allowed))
    return run(torch.get_num_threads(), *layout, *addresses, last, *map(tensor_memory.get_unchecked_address, made))


def straight_through_attention(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    choice: Choice,
    *,
    scale: float,
    causal: bool = False,
    bias: Float[Tensor, "..."] | None = None,
) -> Float[Tensor, "*lead query value"]:
    """Return the chosen values. Query and key get the gradient of soft attention, the value that of the choice."""
    lead, width = choice.keys.shape[:-1], value.shape[-1]
    query, key, value = (reshape_to_four_axes(tensor, lead) for tensor in (query, key, value))
    four = _pad_to_equal_widths(query, key, value)
    bias = None if bias is None else reshape_to_four_axes(bias, lead)
    index = reshape_to_four_axes(choice.keys[..., None], lead)
    chosen = reshape_to_four_axes(choice.output, lead)
    chosen = torch.nn.functional.pad(chosen, (0, max(0, query.shape[-1] - width)))
    options = {"scale": scale, "causal": causal}
    output = _StraightThrough.apply(*four, (chosen, index), bias, options)  # type: ignore[no-untyped-call]
    found: Tensor = output[..., :width].reshape(*lead, *output.shape[-2:-1], width)
    return found


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, choice, bias, options):  # type: ignore[no-untyped-def]
        output, index = choice
        soft, total = flash_attention(query, key, value, bias=bias, **options)
        ctx.save_for_backward(query, key, value, bias, index, soft, total)
        ctx.options = options
        return output

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        query, key, value, bias, index, soft, total = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            again = partial(explicit_straight_through, index=index, bias=bias, **ctx.options)
            return *explicit_gradients(again, (query, key, value), (gradient, None)), None, None, None
        grads = flash_attention_backward(gradient, query, key, value, soft, total, bias=bias, **ctx.options)
        return grads[0], grads[1], _add_to_chosen(gradient, index, value), None, None, None


def _add_to_chosen(gradient: Tensor, index: Int[Tensor, "batch head query 1"], value: Tensor) -> Tensor:
    """Return the sum of the gradients of the queries that chose each value."""
    batch, heads, keys, width = value.shape
    place = torch.arange(batch * heads, device=index.device).view(batch, heads, 1, 1) * keys + index.clamp_min(0)
    own = gradient if bool((index >= 0).all()) else gradient.masked_fill(index < 0, 0.0)
    total = torch.zeros(batch * heads * keys, width, dtype=value.dtype)
    return total.index_add_(0, place.flatten(), own.reshape(-1, width)).view(batch, heads, keys, width)


def explicit_straight_through(
    query: Tensor, key: Tensor, value: Tensor, *, index: Tensor, scale: float, causal: bool, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the same by the definition, in whole tables, which has derivatives of every order; and the log totals."""
    soft, total = explicit_weights(query, key, scale=scale, causal=causal, bias=bias)
    hard = torch.zeros_like(soft).scatter(-1, index.clamp_min(0), (index >= 0).to(soft.dtype))
    return (hard + soft - soft.detach()) @ value, total
