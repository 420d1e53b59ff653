"""The gates of recurrent cells after the matrix product, one step at a time: by our own loops, or by torch.

A row that is not `real` (padding) keeps its state. `recurrent` has the formulas and puts the steps together.
"""

from collections.abc import Callable

import torch

from regard.algebra.shapes import Tensor
from regard.compute.kernels import native
from regard.compute.kernels.native import tensor_memory
from regard.compute.kernels.native.loader import SUFFIX, find_library

OptionalTensor = Tensor | None


def find_cell_library(*tensors: OptionalTensor) -> native.Library | None:
    """Return our own loops if they can read these tensors; the first has the numbers of all steps together."""
    first, *others = tensors
    return None if first is None else find_library(first, *others)


def bind_function(library: native.Library, name: str, dtype: torch.dtype, pointers: int) -> Callable[..., None]:
    """Return one of our loops, for contiguous tensors of one dtype, or steps of them: (rows, size, tensors…)."""
    kinds = (*(native.SIZE,) * 3, *(native.POINTER,) * pointers)
    function, threads = library.function(f"regard_{name}_{SUFFIX[dtype]}", *kinds), torch.get_num_threads()

    def run(rows: int, size: int, *tensors: OptionalTensor) -> None:
        function(threads, rows, size, *map(tensor_memory.get_unchecked_address, tensors))

    return run


def gru_cell(
    real: OptionalTensor, inputs: Tensor, hidden: Tensor, before: Tensor, state: Tensor, kept: OptionalTensor
) -> None:
    """Fill `state` and, if a backward pass will come, `kept`: reset, update, candidate, hidden share."""
    by_hand, product = inputs.chunk(3, dim=-1), hidden.chunk(3, dim=-1)
    reset, update = torch.sigmoid(by_hand[0] + product[0]), torch.sigmoid(by_hand[1] + product[1])
    candidate = torch.tanh(by_hand[2] + reset * product[2])
    new = candidate + update * (before - candidate)
    state.copy_(new if real is None else torch.where(real[:, None], new, before))
    if kept is not None:
        kept.copy_(torch.cat([reset, update, candidate, product[2]], dim=-1))


def gru_cell_backward(
    real: OptionalTensor,
    kept: Tensor,
    before: Tensor,
    upstream: Tensor,
    by_input: Tensor,
    by_hidden: Tensor,
    carry: Tensor,
) -> None:
    """Fill `by_input` and `by_hidden`; `carry` is the gradient from the next step, and then to the step before."""
    reset, update, candidate, share = kept.chunk(4, dim=-1)
    grad = upstream + carry
    by_candidate = grad * (1 - update) * (1 - candidate**2)
    by_update = grad * (before - candidate) * update * (1 - update)
    by_reset = by_candidate * share * reset * (1 - reset)
    by_input.copy_(torch.cat([by_reset, by_update, by_candidate], dim=-1))
    by_hidden.copy_(torch.cat([by_reset, by_update, by_candidate * reset], dim=-1))
    carry.copy_(grad * update)
    if real is not None:
        _skip_padding(real, grad, carry, by_input, by_hidden)


def lstm_cell(  # noqa: PLR0913  # the tensors of one step, as recurrent.cpp takes them
    real: OptionalTensor,
    inputs: Tensor,
    hidden: Tensor,
    before: Tensor,
    cell_before: Tensor,
    state: Tensor,
    cell: Tensor,
    kept: OptionalTensor,
) -> None:
    """Fill `state`, `cell` and `kept`: input, forget, candidate, output, tangent of the cell."""
    gates = (inputs + hidden).chunk(4, dim=-1)
    into, forget, out = (torch.sigmoid(gates[gate]) for gate in (0, 1, 3))
    candidate = torch.tanh(gates[2])
    now = forget * cell_before + into * candidate
    seen = torch.tanh(now)
    if kept is not None:
        kept.copy_(torch.cat([into, forget, candidate, out, seen], dim=-1))
    state.copy_(out * seen if real is None else torch.where(real[:, None], out * seen, before))
    cell.copy_(now if real is None else torch.where(real[:, None], now, cell_before))


def lstm_cell_backward(
    real: OptionalTensor,
    kept: Tensor,
    cell_before: Tensor,
    upstream: Tensor,
    by_gates: Tensor,
    carry: Tensor,
    cell_carry: Tensor,
) -> None:
    """Fill `by_gates`; both carries are the gradients from the next step, and then to the step before."""
    into, forget, candidate, out, seen = kept.chunk(5, dim=-1)
    grad = upstream + carry
    by_cell = cell_carry + grad * out * (1 - seen**2)
    parts = [
        by_cell * candidate * into * (1 - into),
        by_cell * cell_before * forget * (1 - forget),
        by_cell * into * (1 - candidate**2),
        grad * seen * out * (1 - out),
    ]
    by_gates.copy_(torch.cat(parts, dim=-1))
    carry.zero_()
    onward = by_cell * forget
    cell_carry.copy_(onward if real is None else torch.where(real[:, None], onward, cell_carry))
    if real is not None:
        _skip_padding(real, grad, carry, by_gates)


def _skip_padding(real: Tensor, grad: Tensor, carry: Tensor, *by_gates: Tensor) -> None:
    """Pass the gradient of a row of padding on to the step before, and to nothing else."""
    carry.copy_(torch.where(real[:, None], carry, grad))
    for gradient in by_gates:
        gradient.masked_fill_(~real[:, None], 0.0)
