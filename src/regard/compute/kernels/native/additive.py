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


def compute_scores(library: Library, query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """Return the scores; all tensors are float32 or float64, and on the CPU."""
    lead, query, key, weight = _align(query, key, weight)
    result = query.new_empty((*lead, query.shape[-2], key.shape[-2]))
    given = [*map(tensor_memory.get_strided_address, (query, key, weight)), tensor_memory.get_unchecked_address(result)]
    run = library.function(f"regard_additive_scores_{SUFFIX[query.dtype]}", *_SCORES_TAKE)
    _raise_on_failure(run(*given, _pack_problem(query, key, weight)))
    return result


def compute_gradients(
    library: Library, upstream: Tensor, query: Tensor, key: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and weight, in their shapes, from `upstream`, that of the scores."""
    shapes = query.shape, key.shape, weight.shape
    if not upstream.numel() or not shapes[0][-1]:
        return torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(weight)
    lead, query, key, weight = _align(query, key, weight)
    upstream = tensor_memory.make_contiguous(upstream)
    made = (
        query.new_empty((*lead, *query.shape[-2:])),
        key.new_empty((*lead, *key.shape[-2:])),
        weight.new_empty(weight.shape if weight.dim() == 1 else (*lead, weight.shape[-1])),
    )
    run = library.function(f"regard_additive_gradients_{SUFFIX[query.dtype]}", *_GRADIENTS_TAKE)
    given = (*map(tensor_memory.get_strided_address, (query, key, weight)), tensor_memory.get_address(upstream))
    _raise_on_failure(run(*given, *map(tensor_memory.get_unchecked_address, made), _pack_problem(query, key, weight)))
    return _sum_to_shape(made[0], shapes[0]), _sum_to_shape(made[1], shapes[1]), _sum_to_shape(made[2], shapes[2])


def _align(query: Tensor, key: Tensor, weight: Tensor) -> tuple[torch.Size, Tensor, Tensor, Tensor]:
    """Return the common leading axes, at most two, and each tensor with all of them, without a copy if possible.

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
    return lead, query, key, weight


def _pack_problem(query: Tensor, key: Tensor, weight: Tensor) -> bytes:
    """Return sizes and strides; missing leading axes have size one and stride zero."""
    *lead, queries, hidden = query.shape
    near, far = query.stride()[:-1], key.stride()[:-1]
    heavy = weight.stride()[:-1]
    missing = 2 - len(lead)
    if missing:
        none = (0,) * missing
        lead, near, far = [1] * missing + lead, none + near, none + far
    heavy = (0,) * (2 - len(heavy)) + heavy
    keys, threads = key.shape[-2], torch.get_num_threads()
    return _PROBLEM.pack(*lead, queries, keys, hidden, *near, *far, *heavy, weight.dim() == 1, threads)


def _raise_on_failure(failure: int) -> None:
    if failure:
        raise MemoryError("the additive kernel could not allocate its buffers")


def _sum_to_shape(gradient: Tensor, shape: torch.Size) -> Tensor:
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)
