"""The compiled additive score and its gradients, on tensors that broadcast along their leading axes."""

import ctypes
import struct

import torch

from regard.algebra.shapes import Tensor
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX, Library

_PROBLEM = struct.Struct("15q")  # sizes, strides and threads, as additive.hpp reads them
_SCORES_TAKE = (*(ctypes.c_void_p,) * 4, ctypes.c_char_p)
_GRADIENTS_TAKE = (*(ctypes.c_void_p,) * 7, ctypes.c_char_p)
_NO_MEMORY = "the additive kernel could not allocate its buffers"


def compute_scores(library: Library, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """Return the scores; all tensors are float32 or float64, and on the CPU."""
    lead, problem, query, key, weight = _align(query, key, weight)
    result = query.new_empty((*lead, query.shape[-2], key.shape[-2]))
    given = [*map(tensor_memory.get_strided_address, (query, key, weight)), tensor_memory.get_unchecked_address(result)]
    if library.function(f"regard_additive_scores_{SUFFIX[query.dtype]}", *_SCORES_TAKE)(*given, problem):
        raise MemoryError(_NO_MEMORY)
    return result


def compute_gradients(
    library: Library, upstream: Tensor, query: Tensor, key: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and weight, in their shapes, from `upstream`, that of the scores."""
    shapes = query.shape, key.shape, weight.shape
    if not upstream.numel() or not shapes[0][-1]:
        return torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(weight)
    lead, problem, query, key, weight = _align(query, key, weight)
    upstream = tensor_memory.make_contiguous(upstream)
    made = (
        query.new_empty((*lead, *query.shape[-2:])),
        key.new_empty((*lead, *key.shape[-2:])),
        weight.new_empty(weight.shape if weight.dim() == 1 else (*lead, weight.shape[-1])),
    )
    run = library.function(f"regard_additive_gradients_{SUFFIX[query.dtype]}", *_GRADIENTS_TAKE)
    given = (*map(tensor_memory.get_strided_address, (query, key, weight)), tensor_memory.get_address(upstream))
    if run(*given, *map(tensor_memory.get_unchecked_address, made), problem):
        raise MemoryError(_NO_MEMORY)
    return _sum_to_shape(made[0], shapes[0]), _sum_to_shape(made[1], shapes[1]), _sum_to_shape(made[2], shapes[2])


def _align(query: Tensor, key: Tensor, weight: Tensor) -> tuple[torch.Size, bytes, Tensor, Tensor, Tensor]:
    """Return the common leading axes, sizes and strides for the loop, and each tensor with all of these axes.

    Nothing is copied if it can be avoided. The loop walks two leading axes: missing ones have size one and stride zero.
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
    query, key, weight = map(tensor_memory.make_rows_contiguous, (query, key, weight))
    *walked, queries, hidden = query.shape
    none, heavy = (0,) * (2 - len(walked)), weight.stride()[:-1]
    sizes = *(1,) * len(none), *walked, queries, key.shape[-2], hidden
    strides = *none, *query.stride()[:-1], *none, *key.stride()[:-1], *(0,) * (2 - len(heavy)), *heavy
    problem = _PROBLEM.pack(*sizes, *strides, weight.dim() == 1, torch.get_num_threads())
    return lead, problem, query, key, weight


def _sum_to_shape(gradient: Tensor, shape: torch.Size) -> Tensor:
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)
