"""Build calls for one item of a batch from the arguments of torch's attention functions."""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Tensor
from regard.errors import wrong
from regard.inspect.observe.calls import SoftmaxCall

HALF = (torch.float16, torch.bfloat16)
ItemSelector = Callable[[Tensor], Tensor]  # returns one item of a batch, with all its heads on one axis


def build_sdpa_call(
    item: int, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *, causal: bool, scale: float | None
) -> SoftmaxCall:
    """Return the call of `F.scaled_dot_product_attention` on (…, heads, queries, dim) or (batch, queries, dim)."""
    if query.dim() == 3:
        query, key, value = query[:, None], key[:, None], value[:, None]
        mask = mask[:, None] if mask is not None and mask.dim() == 3 else mask
    shape = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3])
    query, key, value = (upcast_half(select_item(tensor, shape, item)) for tensor in (query, key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    bias = None if mask is None else to_bias(select_item(mask, shape, item), query)
    return SoftmaxCall(query * factor, key, bias, 0 if causal else None, value if len(value) == len(key) else None)


def build_packed_call(
    query: Tensor, key: Tensor, heads: int, weight: Tensor, bias: Tensor | None, hidden: Tensor | None
) -> SoftmaxCall:
    """Return the call of one item of torch's fast path, from sequences (length, size) and packed projections.

    `hidden` is what `find_hidden` returns.
    """
    size = weight.shape[-1]
    biases = [None, None] if bias is None else [bias[:size], bias[size : 2 * size]]
    projected = F.linear(query, weight[:size], biases[0]), F.linear(key, weight[size : 2 * size], biases[1])
    query, key = (upcast_half(part).unflatten(-1, (heads, -1)).transpose(0, 1).contiguous() for part in projected)
    return SoftmaxCall(query * (size // heads) ** -0.5, key, None if hidden is None else to_bias(~hidden, query))


def find_hidden(mask: Tensor | None, kind: int | None, item: int) -> Tensor | None:
    """Return which positions of one item a mask of torch's fast path hides: those where it is not zero.

    `kind` 0 is a mask (length, length), 1 is (batch, length), 2 has all four axes.
    """
    if mask is None:
        return None
    return (mask[None] if kind == 0 else mask[item, None, None] if kind == 1 else mask[item]) != 0


def select_item(tensor: Tensor, shape: Sequence[int], item: int) -> Tensor:
    """Return one item of a tensor whose axes before the last three broadcast to `shape`; missing axes are added."""
    tensor = tensor.detach()
    while tensor.dim() < 3:
        tensor = tensor[None]
    lead = tensor.shape[:-3]
    indices = unravel_index(shape, check_item(item, math.prod(shape)))[len(shape) - len(lead) :]
    for size, index in zip(lead, indices, strict=True):
        tensor = tensor.select(0, index if size > 1 else 0)
    return tensor


def check_item(item: int, batch: int) -> int:
    """Return the item; raise if the batch does not have it."""
    if not 0 <= item < batch:
        raise wrong("item", item, f"0 … {batch - 1}", "observe an item that the batch has")
    return item


def to_bias(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask of bools (True = may attend) or floats (added) as floats to be added to the scores."""
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill_(~mask, float("-inf"))


def upcast_half(tensor: Tensor) -> Tensor:
    """Return the tensor, in float32 if it is in half precision."""
    return tensor.float() if tensor.dtype in HALF else tensor


def unravel_index(shape: Sequence[int], item: int) -> list[int]:
    """Return the index of a flat item along each of these axes."""
    indices = []
    for size in reversed(shape):
        item, index = divmod(item, size)
        indices.append(index)
    return indices[::-1]
