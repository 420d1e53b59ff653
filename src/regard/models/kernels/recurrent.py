r"""Recurrent cells over whole sequences, with their backward pass written by hand.

GRU (Cho et al. 2014, with the reset gate after the matrix, as in torch):

$$ r = \sigma(x_r + W_r h + b_r), \quad z = \sigma(x_z + W_z h + b_z), \quad n = \tanh(x_n + r \odot (W_n h + b_n)),
   \quad h' = n + z \odot (h - n) $$

LSTM (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000):

$$ i, f, o = \sigma(\dots), \quad g = \tanh(x_g + W_g h + b_g), \quad c' = f \odot c + i \odot g, \quad h' = o \odot
   \tanh c' $$

with $x$ = `inputs`, which hold the input's part of all gates, $W$ = `weight`, $b$ = `bias`, in torch's order of gates.
Time is the first axis. A step costs one matrix product and one pass over the gates; the gradients of the weights are
one product over all steps at the end, where autograd would make one for each step and add them up.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from regard.algebra.shapes import Bool, Float, Tensor
from regard.compute.kernels.native import tensor_memory
from regard.errors import wrong
from regard.models.kernels import recurrent_cells

Inputs = Float[Tensor, "time batch gates"]
States = Float[Tensor, "time batch size"]
State = Float[Tensor, "batch size"]
Real = Bool[Tensor, "time batch"]


class LSTMOutput(NamedTuple):
    """The states of an LSTM at all times, and its cell after the last one."""

    states: States
    cell: State


def gru(
    inputs: Inputs,
    start: State,
    weight: Float[Tensor, "gates size"],
    bias: Float[Tensor, " gates"],
    *,
    real: Real | None = None,
    reverse: bool = False,
) -> States:
    """Return the states at all times.

    A row that is not `real` (padding) keeps its state; `reverse` goes from the last time to the first. Rows behind the
    last real one of a time are not multiplied: put the longest first.

    >>> gru(torch.zeros(3, 2, 6), torch.ones(2, 2), torch.zeros(6, 2), torch.zeros(6))[:, 0, 0]
    tensor([0.5000, 0.2500, 0.1250])
    """
    _check(inputs, weight, bias, real, 3, start)
    states: Tensor = _GRU.apply(inputs, start, weight, bias, real, reverse)  # type: ignore[no-untyped-call]
    return states


def lstm(
    inputs: Inputs,
    start: tuple[State, State],
    weight: Float[Tensor, "gates size"],
    bias: Float[Tensor, " gates"],
    *,
    real: Real | None = None,
    reverse: bool = False,
) -> LSTMOutput:
    """Return the same for an LSTM, which starts from a state and a cell."""
    _check(inputs, weight, bias, real, 4, *start)
    found = _LSTM.apply(inputs, *start, weight, bias, real, reverse)  # type: ignore[no-untyped-call]
    return LSTMOutput(*found)


def _check(inputs: Tensor, weight: Tensor, bias: Tensor, real: Tensor | None, number: int, *starts: Tensor) -> None:
    """Raise unless all fit the inputs, by whose shape and dtype our loops read; `number` is that of the gates."""
    steps, rows, width = inputs.shape
    size = width // number
    shapes = [(weight, (width, size)), (bias, (width,)), *((start, (rows, size)) for start in starts)]
    for tensor, shape in shapes:
        if tensor.shape != shape or tensor.dtype != inputs.dtype:
            got = f"{tuple(tensor.shape)} of {tensor.dtype}"
            raise wrong("a state or weight", got, f"{shape} of {inputs.dtype}, as the inputs have", "convert it")
    if real is not None and (real.shape != (steps, rows) or real.dtype != torch.bool):
        raise wrong(
            "real", f"{tuple(real.shape)} of {real.dtype}", f"{(steps, rows)} of torch.bool", "give one per row"
        )


def _iterate_times(steps: int, reverse: bool) -> Iterator[tuple[int, int | None]]:
    """Yield each time with the one before it, None at the beginning."""
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    before = None
    for time in order:
        yield time, before
        before = time


def _iterate_times_backward(steps: int, reverse: bool) -> Iterator[tuple[int, int | None]]:
    return reversed(list(_iterate_times(steps, reverse)))


def _select_time(real: Tensor | None, time: int) -> Tensor | None:
    return None if real is None else real[time]


def _count_rows(real: Tensor | None, steps: int, rows: int) -> list[int]:
    """Return, for each time, how many rows there are up to the last real one."""
    if real is None:
        return [rows] * steps
    return (real * torch.arange(1, rows + 1, device=real.device)).amax(1).tolist() if rows else [0] * steps


def _compute_weight_gradients(
    by_hidden: Tensor, states: Tensor, start: Tensor, reverse: bool, counts: list[int]
) -> tuple[Tensor, Tensor]:
    """Return the gradients of matrix and bias: one product of all steps with the states before them."""
    steps, rows, _ = states.shape
    if min(counts) < rows:
        befores = [start if last is None else states[last] for _, last in _iterate_times(steps, reverse)]
        times = [time for time, _ in _iterate_times(steps, reverse)]
        later = torch.cat([by_hidden[time, : counts[time]] for time in times])
        earlier = torch.cat([before[: counts[time]] for time, before in zip(times, befores, strict=True)])
        return later.T @ earlier, later.sum(0)
    later, earlier, first = by_hidden[1:], states[:-1], by_hidden[0]
    if reverse:
        later, earlier, first = by_hidden[:-1], states[1:], by_hidden[steps - 1]
    return torch.addmm(later.flatten(0, 1).T @ earlier.flatten(0, 1), first.T, start), by_hidden.sum((0, 1))


class _GRU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, start: Tensor, weight: Tensor, bias: Tensor, real: Tensor | None, reverse: bool
    ) -> Tensor:
        steps, rows, size = inputs.shape[0], inputs.shape[1], start.shape[-1]
        inputs, start = tensor_memory.make_contiguous(inputs), tensor_memory.make_contiguous(start)
        real = None if real is None else tensor_memory.make_contiguous(real)
        states, hidden = inputs.new_empty(steps, rows, size), inputs.new_zeros(rows, 3 * size)
        kept = inputs.new_empty(steps, rows, 4 * size) if any(ctx.needs_input_grad) else None
        run = _choose_cell("gru_cell", recurrent_cells.gru_cell, 6, inputs, start, real)
        transposed, counts = weight.T, _count_rows(real, steps, rows)
        for time, last in _iterate_times(steps, reverse):
            before, count = start if last is None else states[last], counts[time]
            torch.addmm(bias, before[:count], transposed, out=hidden[:count])
            saved = None if kept is None else kept[time]
            run(rows, size, _select_time(real, time), inputs[time], hidden, before, states[time], saved)
        ctx.save_for_backward(states, kept, start, weight, real)
        ctx.reverse, ctx.counts = reverse, counts
        return states

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        states, kept, start, weight, real = ctx.saved_tensors
        steps, rows, size = states.shape
        upstream, carry = tensor_memory.make_contiguous(upstream), torch.zeros_like(start)
        by_input, by_hidden = (states.new_empty(steps, rows, 3 * size) for _ in range(2))
        run = _choose_cell("gru_cell_backward", recurrent_cells.gru_cell_backward, 7, states, upstream)
        for time, last in _iterate_times_backward(steps, ctx.reverse):
            before = start if last is None else states[last]
            grads = upstream[time], by_input[time], by_hidden[time], carry
            run(rows, size, _select_time(real, time), kept[time], before, *grads)
            count = ctx.counts[time]
            carry[:count].addmm_(by_hidden[time, :count], weight)
        made = _compute_weight_gradients(by_hidden, states, start, ctx.reverse, ctx.counts)
        return by_input, carry, *made, None, None


class _LSTM(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0913  # autograd counts every tensor
        ctx: Any,
        inputs: Tensor,
        start: Tensor,
        cell_start: Tensor,
        weight: Tensor,
        bias: Tensor,
        real: Tensor | None,
        reverse: bool,
    ) -> tuple[Tensor, Tensor]:
        steps, rows, size = inputs.shape[0], inputs.shape[1], start.shape[-1]
        inputs, start, cell_start = map(tensor_memory.make_contiguous, (inputs, start, cell_start))
        real = None if real is None else tensor_memory.make_contiguous(real)
        states, cells = (inputs.new_empty(steps, rows, size) for _ in range(2))
        hidden = inputs.new_zeros(rows, 4 * size)
        kept = inputs.new_empty(steps, rows, 5 * size) if any(ctx.needs_input_grad) else None
        run = _choose_cell("lstm_cell", recurrent_cells.lstm_cell, 8, inputs, start, cell_start, real)
        transposed, counts = weight.T, _count_rows(real, steps, rows)
        for time, last in _iterate_times(steps, reverse):
            before, cell = (start, cell_start) if last is None else (states[last], cells[last])
            torch.addmm(bias, before[: counts[time]], transposed, out=hidden[: counts[time]])
            outputs = states[time], cells[time], None if kept is None else kept[time]
            run(rows, size, _select_time(real, time), inputs[time], hidden, before, cell, *outputs)
        ctx.save_for_backward(states, cells, kept, start, cell_start, weight, real)
        ctx.reverse, ctx.counts = reverse, counts
        return states, cells[0 if reverse else steps - 1].clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor, by_cell: Tensor) -> tuple[Tensor | None, ...]:
        states, cells, kept, start, cell_start, weight, real = ctx.saved_tensors
        steps, rows, size = states.shape
        upstream, carry = tensor_memory.make_contiguous(upstream), torch.zeros_like(start)
        cell_carry = by_cell.clone(memory_format=torch.contiguous_format)
        by_gates = states.new_empty(steps, rows, 4 * size)
        run = _choose_cell("lstm_cell_backward", recurrent_cells.lstm_cell_backward, 7, states, upstream, by_cell)
        for time, last in _iterate_times_backward(steps, ctx.reverse):
            cell = cell_start if last is None else cells[last]
            grads = upstream[time], by_gates[time], carry, cell_carry
            run(rows, size, _select_time(real, time), kept[time], cell, *grads)
            count = ctx.counts[time]
            carry[:count].addmm_(by_gates[time, :count], weight)
        made = _compute_weight_gradients(by_gates, states, start, ctx.reverse, ctx.counts)
        return by_gates, carry, cell_carry, *made, None, None


def _choose_cell(
    name: str, plain: Callable[..., None], pointers: int, like: Tensor, *others: Tensor | None
) -> Callable[..., None]:
    """Return the gates of one step: our own loop if there is a compiler, else torch's operations."""
    library = recurrent_cells.find_cell_library(like, *others)
    if library is None:
        return lambda rows, size, *tensors: plain(*tensors)
    return recurrent_cells.bind_function(library, name, like.dtype, pointers)
