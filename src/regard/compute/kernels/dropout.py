r"""Dropout whose noise is drawn where it is used: nothing is stored between forward and backward.

$$ y_i = m_i x_i / (1 - p), \qquad m_i = [u_i \ge p] $$

with $p$ = `rate` and $u$ = `noise.uniform` at the address (seed, $i$ ÷ 4096, $i$ mod 4096), where $i$ counts the
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
from regard.compute.kernels.native import gate
from regard.compute.kernels.native.reach import SUFFIX, library_for
from regard.errors import wrong

COLUMNS = 4096  # numbers in a row of the noise, as in dropout.cpp
Numbers = Float[Tensor, "*shape"]


def dropout(numbers: Numbers, rate: float) -> Numbers:
    """Some of the numbers set to 0, with probability `rate` each, and the others scaled up to make up for it.

    >>> dropout(torch.ones(2), 0.0)
    tensor([1., 1.])
    """
    if _trivial(rate):
        return numbers
    if _foreign(numbers):
        return F.dropout(numbers, rate)
    result: Tensor = _Dropped.apply(numbers, noise.draw_seed(), rate)  # type: ignore[no-untyped-call]
    return result


def added(base: Numbers, numbers: Numbers, rate: float) -> Numbers:
    """`base` + dropout of the numbers: what a residual connection does.

    >>> added(torch.ones(2), torch.ones(2), 0.0)
    tensor([2., 2.])
    """
    if _trivial(rate):
        return base + numbers
    if _foreign(base) or _foreign(numbers) or base.shape != numbers.shape or base.dtype != numbers.dtype:
        return base + F.dropout(numbers, rate)
    result: Tensor = _Added.apply(base, numbers, noise.draw_seed(), rate)  # type: ignore[no-untyped-call]
    return result


def rectified(numbers: Numbers, rate: float) -> Numbers:
    """Dropout of the numbers above 0: what stands between the two matrices of a feed-forward network.

    >>> rectified(torch.tensor([-1.0, 2.0]), 0.0)
    tensor([0., 2.])
    """
    if _trivial(rate):
        return F.relu(numbers)
    if _foreign(numbers):
        return F.dropout(F.relu(numbers), rate)
    result: Tensor = _Rectified.apply(numbers, noise.draw_seed(), rate)  # type: ignore[no-untyped-call]
    return result


def _trivial(rate: float) -> bool:
    if not 0 <= rate < 1:
        raise wrong("dropout", rate, "a rate from 0 to below 1", "use 0 for none")
    return rate == 0


def _foreign(tensor: Tensor) -> bool:
    """Whether torch has to draw: no memory of ours to walk through."""
    return tensor.dtype not in SUFFIX or not gate.reachable(tensor)


class _Dropped(torch.autograd.Function):
    """Linear in the numbers, so that the gradient is the same function again."""

    @staticmethod
    def forward(ctx: Any, numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
        ctx.seed, ctx.rate = seed, rate
        return _kept(numbers, seed, rate)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Dropped.apply(grad, ctx.seed, ctx.rate), None, None  # type: ignore[no-untyped-call]


class _Added(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, base: Tensor, numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
        ctx.seed, ctx.rate = seed, rate
        return _kept(numbers, seed, rate, base)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        return grad, _Dropped.apply(grad, ctx.seed, ctx.rate), None, None  # type: ignore[no-untyped-call]


class _Rectified(torch.autograd.Function):
    """A number that came out above 0 was above 0 and kept: the output tells the gradient."""

    @staticmethod
    def forward(ctx: Any, numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
        ctx.rate = rate
        output = _positive(numbers, seed, rate)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (output,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grad, output, 0).mul_(1 / (1 - ctx.rate)), None, None


def _kept(numbers: Tensor, seed: Tensor, rate: float, base: Tensor | None = None) -> Tensor:
    numbers = gate.packed(numbers)
    base = None if base is None else gate.packed(base)
    run = _function("regard_dropout", numbers, pointers=3)
    if run is None:
        kept = numbers * _factors(numbers, seed, rate)
        return kept if base is None else base + kept
    result = torch.empty_like(numbers)
    places = gate.address(numbers), gate.address(base), gate.address(result)
    run(torch.get_num_threads(), int(seed), numbers.numel(), rate, 1 / (1 - rate), *places)
    return result


def _positive(numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
    numbers = gate.packed(numbers)
    run = _function("regard_rectified", numbers, pointers=2)
    if run is None:
        return numbers.relu() * _factors(numbers, seed, rate)
    result = torch.empty_like(numbers)
    places = gate.address(numbers), gate.address(result)
    run(torch.get_num_threads(), int(seed), numbers.numel(), rate, 1 / (1 - rate), *places)
    return result


def _factors(numbers: Tensor, seed: Tensor, rate: float) -> Tensor:
    """0 or 1 / (1 - rate) for each number."""
    rows = -(-numbers.numel() // COLUMNS)
    drawn = noise.uniform(seed, (), torch.arange(rows), torch.arange(COLUMNS)) >= rate
    return drawn.flatten()[: numbers.numel()].view(numbers.shape).to(numbers.dtype) * (1 / (1 - rate))


def _function(name: str, numbers: Tensor, *, pointers: int) -> Callable[..., int] | None:
    """Our own loop, or None where torch has to."""
    library = library_for(numbers)
    if library is None or not numbers.numel():
        return None
    kinds = (*(native.SIZE,) * 3, ctypes.c_float, ctypes.c_double, *(native.POINTER,) * pointers)
    return library.function(f"{name}_{SUFFIX[numbers.dtype]}", *kinds)
