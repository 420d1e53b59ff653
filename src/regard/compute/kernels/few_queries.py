r"""Softmax attention of a handful of queries, as in a step of a decoder.

$$ o_i = \sum_{j \in A_i} \mathrm{softmax}_j(c\, q_i \cdot k_j)\, v_j $$

with $c$ = `scale` and $A_i$ the keys that `allowed` says query $i$ may see. Kernels for many queries score all pairs in
tiles and hide what is not allowed afterwards. Here nothing else is read at all: of the slots that the hypotheses of a
sentence share, each sees one in as many as there are hypotheses, and what a key that is hidden holds, NaN too, cannot
matter. A query that sees nothing gives zeros.
"""

import ctypes
from typing import Any, overload

import torch

from regard.algebra.shapes import Bool, Float, Tensor
from regard.compute.kernels import native
from regard.compute.kernels.fused import fused_attention, reshape_to_four_axes
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX
from regard.errors import wrong

MOST_QUERIES = 8  # above so many queries, tiles are faster
DTYPES = tuple(SUFFIX)  # for which the kernel is written


def few_queries_attention(
    query: Float[Tensor, "*#lead query dim"],
    key: Float[Tensor, "*#lead key dim"],
    value: Float[Tensor, "*#lead key value"],
    *,
    scale: float = 1.0,
    allowed: Bool[Tensor, "*#lead #query #key"] | None = None,
) -> Float[Tensor, "*lead query value"]:
    """Return the output, without a gradient. The compiled library must be loaded: it is not built for this alone."""
    check_fit(query, key, value, allowed)
    if not tensor_memory.is_reachable(query, key, value, allowed):
        bias = None if allowed is None else torch.where(allowed, 0.0, float("-inf")).to(query.dtype)
        return fused_attention(query, key, value, scale=scale, bias=bias).output
    library = native.load_library(build=False)
    if library is None:
        raise wrong("few_queries", "no compiled library", "one", 'use backend="auto"')
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    if allowed is not None:
        allowed = allowed.expand(*allowed.shape[:-2], query.shape[-2], key.shape[-2])
    query, key, value = (_arrange(tensor, lead) for tensor in (query, key, value))
    output = _call(library, query, key, value, scale, _arrange(allowed, lead))
    return output if len(lead) == 2 else output.reshape(*lead, *output.shape[-2:])


@overload
def _arrange(tensor: Tensor, lead: tuple[int, ...]) -> Tensor: ...
@overload
def _arrange(tensor: None, lead: tuple[int, ...]) -> None: ...
def _arrange(tensor: Tensor | None, lead: tuple[int, ...]) -> Tensor | None:
    """Return a tensor with four axes and the numbers of a row next to each other, as our loop walks it."""
    if tensor is None:
        return None
    if tensor.dim() != 4 or tensor.shape[:-2] != lead:
        tensor = reshape_to_four_axes(tensor, lead)
    return tensor_memory.make_rows_contiguous(tensor)


def _call(
    library: native.Library, query: Tensor, key: Tensor, value: Tensor, scale: float, allowed: Tensor | None
) -> Tensor:
    output = query.new_empty(*query.shape[:-1], value.shape[-1])
    sizes = (*query.shape[:3], key.shape[-2], query.shape[-1], value.shape[-1])
    tensors = (query, key, value, query if allowed is None else allowed, output)
    steps = [step for tensor in tensors for step in tensor.stride()[:3]]
    kinds = (native.SIZE, native.POINTER, native.POINTER, ctypes.c_double, *(native.POINTER,) * 5)
    run = library.function(f"regard_few_queries_{SUFFIX[query.dtype]}", *kinds)
    inputs = map(tensor_memory.get_strided_address, (query, key, value, allowed))
    numbers: Any = ctypes.c_int64
    layout = (numbers * 6)(*sizes), (numbers * 15)(*steps)
    run(torch.get_num_threads(), *layout, scale, *inputs, tensor_memory.get_unchecked_address(output))
    return output


def check_fit(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> None:
    """Raise unless the sizes fit: our loop reads all tensors by the sizes of the first."""
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        got = f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
        raise wrong("query, key, value", got, "one width of queries and keys, a value for each key", "project them")
    if not query.dtype == key.dtype == value.dtype or (allowed is not None and allowed.dtype != torch.bool):
        raise wrong("query, key, value", f"{query.dtype}, {key.dtype}, {value.dtype}", "one dtype", "convert them")
