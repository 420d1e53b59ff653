r"""Softmax attention of a handful of queries, as a decoder asks them at each step.

$$ o_i = \sum_{j \in A_i} \mathrm{softmax}_j(c\, q_i \cdot k_j)\, v_j $$

with $c$ = `scale` and $A_i$ the keys that `allowed` says query $i$ may see. Kernels for many queries score all pairs in
tiles and hide what is not allowed afterwards. Here nothing else is read at all: of the slots that the hypotheses of a
sentence share, each sees one in as many as there are hypotheses, and what a key that is hidden holds, NaN too, cannot
matter. A query that sees nothing gives zeros.
"""

import ctypes
from typing import Any

import torch

from regard.algebra.shapes import Bool, Float, Tensor
from regard.compute.kernels import native
from regard.compute.kernels.fused import fused_attention, reshape_to_four_axes
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.dispatch import SUFFIX
from regard.errors import wrong

MOST_QUERIES = 8  # queries from which tiles are faster
DTYPES = tuple(SUFFIX)  # for which the kernel is written


def few_queries_attention(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    *,
    scale: float = 1.0,
    allowed: Bool[Tensor, "*#lead #query #key"] | None = None,
) -> Float[Tensor, "*lead query value"]:
    """The output, without a gradient; only where it is `available`."""
    _check(query, key, value, allowed)
    if not tensor_memory.is_reachable(
        query, key, value, allowed
    ):  # a plan that was made before a mode or transform came
        bias = None if allowed is None else torch.where(allowed, 0.0, float("-inf")).to(query.dtype)
        return fused_attention(query, key, value, scale=scale, bias=bias).output
    library = native.load_library(build=False)
    if library is None:
        raise wrong("few_queries", "no compiled library", "one", "build it with regard.compute.kernels.native.load_library()")
    lead = query.shape[:-2]
    if query.dim() != 4 or not lead == key.shape[:-2] == value.shape[:-2]:
        lead = torch.broadcast_shapes(lead, key.shape[:-2], value.shape[:-2])
        query, key, value = (
            reshape_to_four_axes(query, lead),
            reshape_to_four_axes(key, lead),
            reshape_to_four_axes(value, lead),
        )
    query, key, value = (
        tensor_memory.make_rows_contiguous(query),
        tensor_memory.make_rows_contiguous(key),
        tensor_memory.make_rows_contiguous(value),
    )
    output = query.new_empty(*query.shape[:-1], value.shape[-1])
    sizes = (*query.shape[:3], key.shape[-2], query.shape[-1], value.shape[-1])
    if allowed is not None and len(lead) == 2:
        allowed = tensor_memory.make_rows_contiguous(allowed.expand(*lead, query.shape[-2], key.shape[-2]))
    elif allowed is not None:
        allowed = tensor_memory.make_rows_contiguous(
            reshape_to_four_axes(allowed.expand(*allowed.shape[:-2], query.shape[-2], key.shape[-2]), lead)
        )
    tensors = (query, key, value, query if allowed is None else allowed, output)
    steps = [step for tensor in tensors for step in tensor.stride()[:3]]
    numbers: Any = ctypes.c_int64
    kinds = (native.SIZE, native.POINTER, native.POINTER, ctypes.c_double, *(native.POINTER,) * 5)
    run = library.function(f"regard_few_queries_{SUFFIX[query.dtype]}", *kinds)
    places = map(tensor_memory.get_strided_address, (query, key, value, allowed))
    run(
        torch.get_num_threads(),
        (numbers * 6)(*sizes),
        (numbers * 15)(*steps),
        scale,
        *places,
        tensor_memory.get_unchecked_address(output),
    )
    return output if len(lead) == 2 else output.reshape(*lead, *output.shape[-2:])


def _check(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> None:
    """Our loop reads everything by the sizes of the first that has them."""
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        got = f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
        raise wrong("query, key, value", got, "one width of queries and keys, a value for each key", "project them")
    if not query.dtype == key.dtype == value.dtype or (allowed is not None and allowed.dtype != torch.bool):
        raise wrong("query, key, value", f"{query.dtype}, {key.dtype}, {value.dtype}", "one dtype", "convert them")
