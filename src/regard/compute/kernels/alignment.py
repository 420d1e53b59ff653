r"""The recurrence of monotonic alignment, over queries one by one and over keys at once.

$$ \alpha_{ij} = p_{ij} q_{ij}, \qquad q_{ij} = r_{i,j-1} q_{i,j-1} + \alpha_{i-1,j} $$

with $p$ = `stop`, $r$ = `go_on`, $\alpha_{-1}$ = `previous`: Raffel et al. 2017, eq. 8-9. Every number is between 0 and
1 and nothing is divided or subtracted, so nothing overflows, cancels or becomes NaN. torch runs the recurrence over
keys as a scan by doubling, in log₂ S rounds; our own loop on the CPU (alignment.cpp) just runs it.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from regard.algebra.shapes import Float
from regard.compute.kernels import native
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX, find_library
from regard.errors import wrong

Table = Float[Tensor, "*lead L S"]
Row = Float[Tensor, "*lead S"]


def align(stop: Table, go_on: Table, previous: Row) -> Table:
    """Return the expected weights of all queries, each going on from the one before."""
    if stop.numel() == 0:
        return stop.clone()
    _check(stop, go_on, previous)
    library = find_library(stop, go_on, previous)
    if library is None:
        return _align_by_rows(stop, go_on, previous)
    weights: Tensor = _MonotonicAlignment.apply(stop, go_on, previous, library)  # type: ignore[no-untyped-call]
    return weights


def _check(stop: Tensor, go_on: Tensor, previous: Tensor) -> None:
    """Raise unless all three fit: our loop reads them by the shape and dtype of the first."""
    row = (*stop.shape[:-2], stop.shape[-1])
    if go_on.shape != stop.shape or previous.shape != row or not stop.dtype == go_on.dtype == previous.dtype:
        got = f"{tuple(stop.shape)}, {tuple(go_on.shape)} and {tuple(previous.shape)} of {stop.dtype}, {go_on.dtype}"
        raise wrong("stop, go_on, previous", got, "two tables and a row of one size and dtype", "expand them")


class _MonotonicAlignment(torch.autograd.Function):
    """By our own loop. How far each query gets is computed anew in the backward: only the weights are kept."""

    @staticmethod
    def forward(ctx: Any, stop: Tensor, go_on: Tensor, previous: Tensor, library: native.Library) -> Tensor:
        weights = stop.new_empty(stop.shape)
        _call(
            library,
            "forward",
            tensor_memory.make_contiguous(stop),
            tensor_memory.make_contiguous(go_on),
            tensor_memory.make_contiguous(previous),
            weights,
        )
        # The inputs themselves: a copy has no graph, so that a second derivative could not pass through it.
        ctx.save_for_backward(stop, go_on, previous, weights)
        ctx.library = library
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted: torch has to see every step
            return *_compute_differentiable_gradients(inputs, grad, ctx.needs_input_grad), None
        if not tensor_memory.is_reachable(*inputs, weights, grad):
            with torch.enable_grad():
                given = [tensor.detach().requires_grad_() for tensor in inputs]
                return *torch.autograd.grad(_align_by_rows(*given), given, grad), None
        kept = [tensor_memory.make_contiguous(tensor) for tensor in (*inputs, weights, grad)]
        gradients = tuple(tensor.new_empty(tensor.shape) for tensor in inputs)
        _call(ctx.library, "backward", *kept, *gradients)
        return *gradients, None


def _compute_differentiable_gradients(
    inputs: list[Tensor], grad: Tensor, wanted: tuple[bool, ...]
) -> list[Tensor | None]:
    """Return gradients by torch's operations, which can be differentiated again, for the inputs that want one."""
    # A view of each: if one input was made from another, each gets only its own part of the gradient.
    inputs = [tensor.view_as(tensor) for tensor in inputs]
    chosen = [tensor for tensor, want in zip(inputs, wanted, strict=False) if want]
    found = iter(torch.autograd.grad(_align_by_rows(*inputs), chosen, grad, create_graph=True))
    return [next(found) if want else None for _, want in zip(inputs, wanted, strict=False)]


def _call(library: native.Library, name: str, *tensors: Tensor) -> None:
    stop = tensors[0]
    queries, keys = stop.shape[-2:]
    sizes = (ctypes.c_int64 * 4)(torch.get_num_threads(), stop.numel() // (queries * keys), queries, keys)
    kinds = [native.POINTER] * (len(tensors) + 1)
    function = library.function(f"regard_alignment_{name}_{SUFFIX[stop.dtype]}", *kinds)
    function(sizes, *map(tensor_memory.get_address, tensors))


def _align_by_rows(stop: Table, go_on: Table, previous: Row) -> Table:
    rows = []
    # Unbound and not indexed: the backward of an index fills a whole table with zeros, for every row anew.
    for chance, rest in zip(stop.unbind(-2), go_on.unbind(-2), strict=True):
        previous = chance * _scan(pad(rest[..., :-1], (1, 0)), previous)
        rows.append(previous)
    return torch.stack(rows, -2)


def _scan(decay: Tensor, inputs: Tensor) -> Tensor:
    sums: Tensor = (_Scan if torch.compiler.is_compiling() else _ScanForward).apply(decay, inputs)  # type: ignore[no-untyped-call]
    return sums


class _Scan(torch.autograd.Function):
    r"""$q_j = a_j q_{j-1} + b_j$ for $a$ = `decay`, $b$ = `inputs`. Backward is the same from the end."""

    generate_vmap_rule = True

    @staticmethod
    def forward(decay: Tensor, inputs: Tensor) -> Tensor:
        span = 1
        while span < inputs.shape[-1]:
            inputs = inputs + pad(decay[..., span:] * inputs[..., :-span], (span, 0))
            decay = torch.cat([decay[..., :span], decay[..., span:] * decay[..., :-span]], -1)
            span *= 2
        return inputs.clone() if span == 1 else inputs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        decay, sums = ctx.saved_tensors
        from_end = _scan(decay.flip(-1).roll(1, -1), grad.flip(-1)).flip(-1)
        return from_end * pad(sums[..., :-1], (1, 0)), from_end


class _ScanForward(_Scan):
    """The same with derivatives that are carried forward, which a compiler cannot trace."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _Scan.setup_context(ctx, inputs, output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def jvp(ctx: Any, by_decay: Tensor | None, by_inputs: Tensor | None) -> Tensor:
        decay, sums = ctx.saved_tensors
        change = torch.zeros_like(sums) if by_inputs is None else by_inputs
        if by_decay is not None:
            change = change + by_decay * pad(sums[..., :-1], (1, 0))
        return _scan(decay, change)
