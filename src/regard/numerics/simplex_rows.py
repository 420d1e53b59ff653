"""Who computes rows of weights: our own loops on the CPU; torch elsewhere and where it must look inside."""

import ctypes
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from regard.errors import wrong
from regard.numerics import native
from regard.numerics.native import gate
from regard.numerics.native.reach import SUFFIX, library_for
from regard.numerics.simplex_gradients import gradients_of
from regard.numerics.threshold import Rule, weights_of

BLOCK = 1 << 17  # numbers; measured, with a second cache of 2 MB


def weights(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: Rule) -> Tensor:
    """Weights from scores, mask and alpha of one shape (alpha with a last axis of 1)."""
    if _traced(scores):
        found: Tensor = _weights_operator(scores, allowed, alpha, int(rule))
        return found
    return _weights(scores, allowed, alpha, rule)


def gradients(weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: Rule) -> tuple[Tensor, Tensor | None]:
    """Gradients by scores and, if there is an alpha, by alpha."""
    if _traced(weights):
        by_scores, by_alpha = _gradients_operator(weights, grad, alpha, int(rule))
        return by_scores, None if alpha is None else by_alpha
    # With a graph of the gradient on its way (a second derivative), torch has to see every step.
    return (
        gradients_of(weights, grad, alpha, rule) if torch.is_grad_enabled() else _gradients(weights, grad, alpha, rule)
    )


def _traced(tensor: Tensor) -> bool:
    """Whether to show a compiler one operator: on the CPU our loops beat what it would make of Newton's.

    What is exported runs elsewhere, where nobody knows our operator.
    """
    if torch.compiler.is_compiling():
        return tensor.device.type == "cpu" and not torch.compiler.is_exporting()
    return gate.only_shapes(tensor)  # which the operator knows


def _weights(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: Rule) -> Tensor:
    _check(scores, allowed, alpha)
    library = library_for(scores, allowed, alpha)
    if library is None:
        return _weights_by_torch(scores, allowed, alpha, rule)
    scores, alpha = gate.packed(scores), None if alpha is None else gate.packed(alpha.to(scores.dtype))
    allowed = None if allowed is None else gate.adjacent(allowed)
    result = scores.new_empty(scores.shape)
    _call(library, "forward", rule, _layout(scores, allowed), scores, allowed, alpha, result)
    return result


def _gradients(weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: Rule) -> tuple[Tensor, Tensor | None]:
    _check(weights, grad, alpha)
    library = library_for(weights, grad, alpha)
    if library is None:
        return _gradients_by_torch(weights, grad, alpha, rule)
    weights, grad = gate.packed(weights), gate.packed(grad)
    alpha = None if alpha is None else gate.packed(alpha.to(weights.dtype))
    by_scores = weights.new_empty(weights.shape)
    by_alpha = None if alpha is None else weights.new_empty(alpha.shape)
    _call(library, "backward", rule, _layout(weights, None), weights, grad, alpha, by_scores, by_alpha)
    return by_scores, by_alpha


def _check(table: Tensor, other: Tensor | None, alpha: Tensor | None) -> None:
    """One shape, as our loops read all of them by that of the first; masks are bool, numbers of one kind."""
    fits = other is None or (other.shape == table.shape and other.dtype in (torch.bool, table.dtype))
    if alpha is not None:
        fits = fits and alpha.shape == (*table.shape[:-1], 1)
    if not fits:
        shapes = [f"{tuple(t.shape)} of {t.dtype}" for t in (table, other, alpha) if t is not None]
        raise wrong("scores", ", ".join(shapes), "a mask of their shape and an alpha for each row", "expand them")


def _weights_by_torch(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: Rule) -> Tensor:
    if not _too_long_for_the_cache(scores):
        return weights_of(scores, allowed, alpha, rule)
    result = scores.new_empty(scores.shape)
    for into, part, mask, own in _blocks(result, scores, allowed, alpha):
        into.copy_(weights_of(part, mask, own, rule))
    return result


def _gradients_by_torch(
    weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: Rule
) -> tuple[Tensor, Tensor | None]:
    if not _too_long_for_the_cache(weights):
        return gradients_of(weights, grad, alpha, rule)
    result = weights.new_empty(weights.shape)
    by_alpha = None if alpha is None else weights.new_empty(alpha.shape)
    for into, into_alpha, part, arrived, own in _blocks(result, by_alpha, weights, grad, alpha):
        by_scores, change = gradients_of(part, arrived, own, rule)
        into.copy_(by_scores)
        if change is not None:
            into_alpha.copy_(change)
    return result, by_alpha


def _too_long_for_the_cache(table: Tensor) -> bool:
    """Whether blocks of rows pay: Newton passes over them often, and each pass over new memory is a page fault."""
    return table.numel() > BLOCK and table.device.type == "cpu" and not is_functorch_wrapped_tensor(table)


def _blocks(first: Tensor, *others: Tensor | None) -> Iterator[list[Any]]:
    """The same rows of all tables, as many at a time as fit into the cache."""
    tables = [None if table is None else table.reshape(-1, table.shape[-1]) for table in (first, *others)]
    step = max(1, BLOCK // first.shape[-1])
    for start in range(0, first.numel() // first.shape[-1], step):
        yield [None if table is None else table[start : start + step] for table in tables]


def _layout(table: Tensor, mask: Tensor | None) -> tuple[int, ...]:
    """What `Layout` in simplex.cpp reads. The mask has the table's shape, if need be by strides of 0."""
    *lead, size = table.shape
    threads, rows = torch.get_num_threads(), table.numel() // size
    return (threads, rows, size, 0) if mask is None else (threads, rows, size, len(lead), *lead, *mask.stride()[:-1])


def _call(library: native.Library, name: str, rule: Rule, layout: tuple[int, ...], *tensors: Tensor | None) -> None:
    dtype = next(tensor.dtype for tensor in tensors if tensor is not None)
    kinds = [native.POINTER] * (len(tensors) + 1)
    function = library.function(f"regard_simplex_{name}_{SUFFIX[dtype]}", ctypes.c_int32, *kinds)
    function(rule, (ctypes.c_int64 * len(layout))(*layout), *map(_pointer, tensors))


def _pointer(tensor: Tensor | None) -> int | None:
    """Numbers lie one after another; a mask is walked by its strides."""
    return gate.corner(tensor) if tensor is not None and tensor.dtype == torch.bool else gate.address(tensor)


WEIGHTS = "(Tensor scores, Tensor? allowed, Tensor? alpha, int rule) -> Tensor"
GRADIENTS = "(Tensor weights, Tensor grad, Tensor? alpha, int rule) -> (Tensor, Tensor)"


@torch.library.custom_op("regard::simplex_weights", mutates_args=(), schema=WEIGHTS)
def _weights_operator(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: int) -> Tensor:
    return _weights(scores, allowed, alpha, Rule(rule))


@_weights_operator.register_fake
def _(scores: Tensor, allowed: Tensor | None, alpha: Tensor | None, rule: int) -> Tensor:
    return torch.empty(scores.shape, dtype=scores.dtype, device=scores.device)


@torch.library.custom_op("regard::simplex_gradients", mutates_args=(), schema=GRADIENTS)
def _gradients_operator(weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: int) -> tuple[Tensor, Tensor]:
    by_scores, by_alpha = _gradients(weights, grad, alpha, Rule(rule))
    return by_scores, weights.new_empty(0) if by_alpha is None else by_alpha


@_gradients_operator.register_fake
def _(weights: Tensor, grad: Tensor, alpha: Tensor | None, rule: int) -> tuple[Tensor, Tensor]:
    by_scores = torch.empty(weights.shape, dtype=weights.dtype, device=weights.device)
    return by_scores, weights.new_empty(0 if alpha is None else alpha.shape)
