"""From the arguments of other people's attention functions to one item of a batch that can be looked at."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Tensor
from regard.errors import wrong
from regard.inspect.observe.calls import SoftmaxCall

HALF = (torch.float16, torch.bfloat16)


def build_sdpa_call(
    item: int, query: Tensor, key: Tensor, mask: Tensor | None, *, causal: bool, scale: float | None
) -> SoftmaxCall:
    """The arguments of `F.scaled_dot_product_attention`: (…, heads, queries, dim), of three axes (batch, …)."""
    if query.dim() == 3:
        query, key, mask = query[:, None], key[:, None], mask[:, None] if mask is not None and mask.dim() == 3 else mask
    shape = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3])
    own = upcast_half(select_item(query, shape, item)), upcast_half(select_item(key, shape, item))
    factor = own[0].shape[-1] ** -0.5 if scale is None else scale
    bias = None if mask is None else to_bias(select_item(mask, shape, item), own[0])
    return SoftmaxCall(own[0] * factor, own[1], bias, 0 if causal else None)


def build_packed_call(
    query: Tensor, key: Tensor, heads: int, weight: Tensor, bias: Tensor | None, hidden: Tensor | None
) -> SoftmaxCall:
    """One item of what torch's own fast path is given: sequences (length, size) and packed projections.

    `hidden` is what `find_hidden` gives.
    """
    size = weight.shape[-1]
    parts = [None, None] if bias is None else [bias[:size], bias[size : 2 * size]]
    own = F.linear(query, weight[:size], parts[0]), F.linear(key, weight[size : 2 * size], parts[1])
    asked, known = (upcast_half(part).unflatten(-1, (heads, -1)).transpose(0, 1).contiguous() for part in own)
    return SoftmaxCall(asked * (size // heads) ** -0.5, known, None if hidden is None else to_bias(~hidden, asked))


def find_hidden(mask: Tensor | None, kind: int | None, item: int) -> Tensor | None:
    """What a mask of torch's fast path hides of one item: all that is not zero.

    `kind` 0 is a mask (length, length), 1 is (batch, length), 2 has all four axes.
    """
    if mask is None:
        return None
    own = mask[None] if kind == 0 else mask[item, None, None] if kind == 1 else mask[item]
    return own != 0


def select_item(tensor: Tensor, shape: Sequence[int], item: int) -> Tensor:
    """One item of the axes `shape` in front of the last three, which are padded where they are missing."""
    tensor = tensor.detach()
    while tensor.dim() < 3:
        tensor = tensor[None]
    lead = tensor.shape[:-3]
    place = unravel_index(shape, check_item(item, math.prod(shape)))[len(shape) - len(lead) :]
    for own, at in zip(lead, place, strict=True):
        tensor = tensor.select(0, at if own > 1 else 0)
    return tensor


def check_item(item: int, batch: int) -> int:
    """The item, or a sentence where the batch has no such one."""
    if not 0 <= item < batch:
        raise wrong("item", item, f"0 … {batch - 1}", "observe an item that the batch has")
    return item


def to_bias(mask: Tensor, like: Tensor) -> Tensor:
    """A mask of bools (True = may attend) or floats (added) as floats to be added."""
    if mask.dtype != torch.bool:
        return mask.to(like.dtype)
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill_(~mask, float("-inf"))


def upcast_half(tensor: Tensor) -> Tensor:
    """The tensor in float32 where it is in half precision."""
    return tensor.float() if tensor.dtype in HALF else tensor


def unravel_index(shape: Sequence[int], item: int) -> list[int]:
    """Where that item is along each of these axes."""
    found = []
    for size in reversed(shape):
        item, place = divmod(item, size)
        found.append(place)
    return found[::-1]
