"""The compiled additive score and its gradients, on tensors that broadcast along their leading axes."""

import ctypes
import math
import struct
from collections.abc import Callable

import torch

from regard.numerics.native.loading import Library
from regard.shapes import Tensor

_PROBLEM = struct.Struct("15q")  # sizes, strides and threads, as additive.hpp reads them
_NAMES = {torch.float32: "float", torch.float64: "double"}


def scores(library: Library, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """The scores; float32 or float64, all on the CPU."""
    lead, query, key, weight = _aligned(query, key, weight)
    result = query.new_empty((*lead, query.shape[-2], key.shape[-2]))
    run = _function(library, f"regard_additive_scores_{_NAMES[query.dtype]}", 4)
    _check(run(*_pointers(query, key, weight, result), _problem(query, key, weight)))
    return result


def gradients(
    library: Library, upstream: Tensor, query: Tensor, key: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What `upstream`, the gradient of the scores, gives to each of the three, in the shape it has."""
    shapes = query.shape, key.shape, weight.shape
    lead, query, key, weight = _aligned(query, key, weight)
    upstream = upstream.contiguous()
    made = (
        query.new_empty((*lead, *query.shape[-2:])),
        key.new_empty((*lead, *key.shape[-2:])),
        weight.new_empty(weight.shape if weight.dim() == 1 else (*lead, weight.shape[-1])),
    )
    run = _function(library, f"regard_additive_gradients_{_NAMES[query.dtype]}", 7)
    _check(run(*_pointers(query, key, weight, upstream, *made), _problem(query, key, weight)))
    return _summed(made[0], shapes[0]), _summed(made[1], shapes[1]), _summed(made[2], shapes[2])


def _aligned(query: Tensor, key: Tensor, weight: Tensor) -> tuple[torch.Size, Tensor, Tensor, Tensor]:
    """The common leading axes, and each tensor with all of them: at most two, by strides, without a copy if possible.

    One weight for all stays as it is, so that its gradient is summed where it is made.
    """
    lead = query.shape[:-2]
    if key.shape[:-2] != lead or (weight.dim() > 1 and weight.shape[:-1] != lead):
        lead = torch.broadcast_shapes(lead, key.shape[:-2], weight.shape[:-1])
        query, key = query.expand(*lead, -1, -1), key.expand(*lead, -1, -1)
        weight = weight.expand(*lead, -1) if weight.dim() > 1 else weight
    if len(lead) > 2:
        query, key = query.flatten(0, -4), key.flatten(0, -4)
        weight = weight.flatten(0, -3) if weight.dim() > 1 else weight
    return lead, _dense(query), _dense(key), _dense(weight)


def _dense(tensor: Tensor) -> Tensor:
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _problem(query: Tensor, key: Tensor, weight: Tensor) -> bytes:
    """Sizes and strides. Missing leading axes have size one and stride zero."""
    near, far, heavy = query.stride(), key.stride(), weight.stride()
    *lead, queries, hidden = query.shape
    outer, inner = (1,) * (2 - len(lead)) + tuple(lead)
    skip = (0,) * (2 - len(lead))
    none = (0,) * (3 - len(heavy))
    return _PROBLEM.pack(
        outer, inner, queries, key.shape[-2], hidden,
        *skip, *near[:-1], *skip, *far[:-1], *none, *heavy[:-1], len(heavy) == 1, torch.get_num_threads(),
    )  # fmt: skip


def _pointers(*tensors: Tensor) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]


def _function(library: Library, name: str, pointers: int) -> Callable[..., int]:
    return library.function(name, *(ctypes.c_void_p,) * pointers, ctypes.c_char_p)


def _check(failure: int) -> None:
    if failure:
        raise MemoryError("the additive kernel could not allocate its buffers")


def _summed(gradient: Tensor, shape: torch.Size) -> Tensor:
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


def work(query: Tensor, key: Tensor, weight: Tensor) -> int:
    """How many pairs of hidden units there are to look at."""
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], weight.shape[:-1])
    return math.prod(lead) * query.shape[-2] * key.shape[-2] * query.shape[-1]
