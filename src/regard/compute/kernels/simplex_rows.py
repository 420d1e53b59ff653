"""Rows of weights: by our own loops on the CPU; by torch elsewhere, and if it must see every step."""

import ctypes
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from regard.compute.kernels import native
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX, find_library
from regard.compute.kernels.simplex_gradients import compute_row_gradients
from regard.compute.kernels.threshold import SimplexRule, compute_row_weights
from regard.errors import wrong

BLOCK = 1 << 17  # numbers; measured, with a second cache of 2 MB


def compute_weights(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: SimplexRule) -> Tensor:
    """Return weights from scores, mask and alpha of one shape (alpha with a last axis of 1)."""
    if _runs_as_operator(scores):
        found: Tensor = _weights_operator(scores, allowed, alpha, int(rule))
        return found
    return _compute_weights(scores, allowed, alpha, rule)


def compute_gradients(
    weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: SimplexRule
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of scores and, if there is an alpha, of alpha."""
    if _runs_as_operator(weights):
        by_scores, by_alpha = _gradients_operator(weights, grad, alpha, int(rule))
        return by_scores, None if alpha is None else by_alpha
    # With a graph of the gradient on its way (a second derivative), torch has to see every step.
    return (
        compute_row_gradients(weights, grad, alpha, rule)
        if torch.is_grad_enabled()
        else _compute_gradients(weights, grad, alpha, rule)
    )


def _runs_as_operator(tensor: Tensor) -> bool:
    """Return whether a compiler should see one operator: on the CPU our loops beat what it makes of Newton's steps.

    What is exported runs elsewhere, where nobody knows our operator.
    """
    if torch.compiler.is_compiling():
        return tensor.device.type == "cpu" and not tensor_memory.is_exporting()
    return tensor_memory.has_only_shape(tensor)  # the operator knows these dtypes


def _compute_weights(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: SimplexRule) -> Tensor:
    result = scores.new_empty(scores.shape)
    done = _run_loop("forward", rule, scores, allowed, alpha, result)
    return result if done else _compute_weights_in_torch(scores, allowed, alpha, rule)


def _compute_gradients(
    weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: SimplexRule
) -> tuple[Tensor, Tensor | None]:
    made = weights.new_empty(weights.shape), None if alpha is None else weights.new_empty(alpha.shape)
    done = _run_loop("backward", rule, weights, grad, alpha, *made)
    return made if done else _compute_gradients_in_torch(weights, grad, alpha, rule)


def _run_loop(
    name: str, rule: SimplexRule, table: Tensor, other: Tensor | None, alpha: Tensor | None, *made: Tensor | None
) -> bool:
    """Let a compiled loop fill what was made; return whether there is one for these tensors.

    A mask has the table's shape, if need be by strides of 0; anything else lies as the table does.
    """
    _check(table, other, alpha)
    library = find_library(table, other, alpha)
    if library is None:
        return False
    table = tensor_memory.make_contiguous(table)
    alpha = None if alpha is None else tensor_memory.make_contiguous(alpha.to(table.dtype))
    *lead, size = table.shape
    layout = [torch.get_num_threads(), table.numel() // size, size, 0]  # what `Layout` in simplex.cpp reads
    if other is not None and other.dtype == torch.bool:
        other = tensor_memory.make_rows_contiguous(other)
        layout[3:] = [len(lead), *lead, *other.stride()[:-1]]
    elif other is not None:
        other = tensor_memory.make_contiguous(other)
    addresses = [*map(tensor_memory.get_any_address, (table, other, alpha, *made))]
    kinds = [native.POINTER] * (len(addresses) + 1)
    function = library.function(f"regard_simplex_{name}_{SUFFIX[table.dtype]}", ctypes.c_int32, *kinds)
    function(rule, (ctypes.c_int64 * len(layout))(*layout), *addresses)
    return True


def _check(table: Tensor, other: Tensor | None, alpha: Tensor | None) -> None:
    """Raise unless all have one shape, by which our loops read them, and one dtype (masks: bool)."""
    fits = other is None or (other.shape == table.shape and other.dtype in (torch.bool, table.dtype))
    if alpha is not None:
        fits = fits and alpha.shape == (*table.shape[:-1], 1)
    if not fits:
        shapes = [f"{tuple(t.shape)} of {t.dtype}" for t in (table, other, alpha) if t is not None]
        raise wrong("scores", ", ".join(shapes), "a mask of their shape and an alpha for each row", "expand them")


def _compute_weights_in_torch(
    scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: SimplexRule
) -> Tensor:
    if not _exceeds_cache(scores):
        return compute_row_weights(scores, allowed, alpha, rule)
    result = scores.new_empty(scores.shape)
    for into, part, mask, own in _iterate_blocks(result, scores, allowed, alpha):
        into.copy_(compute_row_weights(part, mask, own, rule))
    return result


def _compute_gradients_in_torch(
    weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: SimplexRule
) -> tuple[Tensor, Tensor | None]:
    if not _exceeds_cache(weights):
        return compute_row_gradients(weights, grad, alpha, rule)
    result = weights.new_empty(weights.shape)
    by_alpha = None if alpha is None else weights.new_empty(alpha.shape)
    for into, into_alpha, part, arrived, own in _iterate_blocks(result, by_alpha, weights, grad, alpha):
        by_scores, change = compute_row_gradients(part, arrived, own, rule)
        into.copy_(by_scores)
        if change is not None:
            into_alpha.copy_(change)
    return result, by_alpha


def _exceeds_cache(table: Tensor) -> bool:
    """Return whether blocks of rows pay: Newton passes over them often, and new memory means page faults."""
    return table.numel() > BLOCK and table.device.type == "cpu" and not is_functorch_wrapped_tensor(table)


def _iterate_blocks(first: Tensor, *others: Tensor | None) -> Iterator[list[Any]]:
    """Yield the same rows of all tables, as many at a time as fit into the cache."""
    tables = [None if table is None else table.reshape(-1, table.shape[-1]) for table in (first, *others)]
    step = max(1, BLOCK // first.shape[-1])
    for start in range(0, first.numel() // first.shape[-1], step):
        yield [None if table is None else table[start : start + step] for table in tables]


WEIGHTS = "(Tensor scores, Tensor? allowed, Tensor? alpha, int rule) -> Tensor"
GRADIENTS = "(Tensor weights, Tensor grad, Tensor? alpha, int rule) -> (Tensor, Tensor)"


@torch.library.custom_op("regard::simplex_weights", mutates_args=(), schema=WEIGHTS)
def _weights_operator(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: int) -> Tensor:
    return _compute_weights(scores, allowed, alpha, SimplexRule(rule))


@_weights_operator.register_fake
def _(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: int) -> Tensor:
    return torch.empty(scores.shape, dtype=scores.dtype, device=scores.device)


@torch.library.custom_op("regard::simplex_gradients", mutates_args=(), schema=GRADIENTS)
def _gradients_operator(weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: int) -> tuple[Tensor, Tensor]:
    by_scores, by_alpha = _compute_gradients(weights, grad, alpha, SimplexRule(rule))
    return by_scores, weights.new_empty(0) if by_alpha is None else by_alpha


@_gradients_operator.register_fake
def _(weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: int) -> tuple[Tensor, Tensor]:
    by_scores = torch.empty(weights.shape, dtype=weights.dtype, device=weights.device)
    return by_scores, weights.new_empty(0 if alpha is None else alpha.shape)
