r"""Dropout whose noise is drawn where it is used: nothing is stored between forward and backward.

$$ y_i = m_i x_i / (1 - p), \qquad m_i = [u_i \ge p] $$

with $p$ = `rate` and $u$ = `noise.draw_uniform` at the address (seed, $i$ ÷ 4096, $i$ mod 4096), where $i$ counts the
numbers in memory order. Srivastava et al. 2014. With our own loops (dropout.cpp) the drawing, the product and what
stands around them are one pass over the numbers; without a compiler torch gives the same bits, more slowly. The seed
comes from torch's generator, so `torch.manual_seed` governs.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels import native, noise
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX, find_library
from regard.errors import wrong

COLUMNS = 4096  # numbers in a row of the noise, as in dropout.cpp
Numbers = Float[Tensor, "*shape"]


def dropout(numbers: Numbers, rate: float) -> Numbers:
    """Return the numbers, each set to 0 with probability `rate`, and the others scaled up to make up for it.

    >>> dropout(torch.ones(2), 0.0)
    tensor([1., 1.])
    """
    if _is_zero_rate(rate):
        return numbers
    if _needs_torch(numbers):
        return F.dropout(numbers, rate)
    result: Tensor = _Dropout.apply(numbers, noise.draw_seed(), rate)  # type: ignore[no-untyped-call]
    return result


def add_dropout(base: Numbers, numbers: Numbers, rate: float) -> Numbers:
    """Return `base` plus dropout of the numbers, as a residual connection needs it.

    >>> add_dropout(torch.ones(2), torch.ones(2), 0.0)
    tensor([2., 2.])
    """
    if _is_zero_rate(rate):
        return base + numbers
    if _needs_torch(base) or _needs_torch(numbers) or base.shape != numbers.shape or base.dtype != numbers.dtype:
        return base + F.dropout(numbers, rate)
    result: Tensor = _AddDropout.apply(base, numbers, noise.draw_seed(), rate)  # type: ignore[no-untyped-call]
    return result


def relu_dropout(numbers: Numbers, rate: float) -> Numbers:
    """Return dropout of the ReLU of the numbers, as a feed-forward network needs it between its two matrices.

    >>> relu_dropout(torch.tensor([-1.0, 2.0]), 0.0)
    tensor([0., 2.])
    """
    if _is_zero_rate(rate):
        return F.relu(numbers)
    if _needs_torch(numbers):
        return F.dropout(F.relu(numbers), rate)
    result: Tensor = _ReluDropout.apply(numbers, noise.draw_seed(), rate)  # type: ignore[no-untyped-call]
    return result


def _is_zero_rate(rate: float) -> bool:
    if not 0 <= rate < 1:
        raise wrong("dropout", rate, "a rate from 0 to below 1", "use 0 for none")
    return rate == 0


def _needs_torch(tensor: Tensor) -> bool:
    """Return whether torch has to draw, because our loop cannot reach the memory."""
    return tensor.dtype not in SUFFIX or not tensor_memory.is_reachable(tensor)


class _Dropout(torch.autograd.Function):
    """Linear in the numbers, so that the gradient is the same function again."""

    @staticmethod
    def forward(ctx: Any, numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
        ctx.seed, ctx.rate = seed, rate
        return _apply_dropout(numbers, seed, rate)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Dropout.apply(grad, ctx.seed, ctx.rate), None, None  # type: ignore[no-untyped-call]


class _AddDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, base: Tensor, numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
        ctx.seed, ctx.rate = seed, rate
        return _apply_dropout(numbers, seed, rate, base)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        return grad, _Dropout.apply(grad, ctx.seed, ctx.rate), None, None  # type: ignore[no-untyped-call]


class _ReluDropout(torch.autograd.Function):
    """Its gradient follows from the output: a number above 0 there was above 0 before, and was kept."""

    @staticmethod
    def forward(ctx: Any, numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
        ctx.rate = rate
        output = _apply_relu_dropout(numbers, seed, rate)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (output,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grad, output, 0).mul_(1 / (1 - ctx.rate)), None, None


def _apply_dropout(numbers: Tensor, seed: Tensor, rate: float, base: Tensor | None = None) -> Tensor:
    numbers = tensor_memory.make_contiguous(numbers)
    base = None if base is None else tensor_memory.make_contiguous(base)
    run = _find_function("regard_dropout", numbers, pointers=3)
    if run is None:
        kept = numbers * _draw_factors(numbers, seed, rate)
        return kept if base is None else base + kept
    result = torch.empty_like(numbers)
    places = tensor_memory.get_address(numbers), tensor_memory.get_address(base), tensor_memory.get_address(result)
    run(torch.get_num_threads(), int(seed), numbers.numel(), rate, 1 / (1 - rate), *places)
    return result


def _apply_relu_dropout(numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
    numbers = tensor_memory.make_contiguous(numbers)
    run = _find_function("regard_relu_dropout", numbers, pointers=2)
    if run is None:
        return numbers.relu() * _draw_factors(numbers, seed, rate)
    result = torch.empty_like(numbers)
    places = tensor_memory.get_address(numbers), tensor_memory.get_address(result)
    run(torch.get_num_threads(), int(seed), numbers.numel(), rate, 1 / (1 - rate), *places)
    return result


def _draw_factors(numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
    """Return 0 or 1 / (1 - rate) for each number."""
    rows = -(-numbers.numel() // COLUMNS)
    drawn = noise.draw_uniform(seed, (), torch.arange(rows), torch.arange(COLUMNS)) >= rate
    return drawn.flatten()[: numbers.numel()].view(numbers.shape).to(numbers.dtype) * (1 / (1 - rate))


def _find_function(name: str, numbers: Tensor, *, pointers: int) -> Callable[..., int] | None:
    """Return our own loop, or None if torch has to compute."""
    library = find_library(numbers)
    if library is None or not numbers.numel():
        return None
    kinds = (*(native.SIZE,) * 3, ctypes.c_float, ctypes.c_double, *(native.POINTER,) * pointers)
    return library.function(f"{name}_{SUFFIX[numbers.dtype]}", *kinds)
