"""Run layers of recurrent cells, with the parameters of torch's modules: whole sequences, or one step at a time."""

from typing import NamedTuple

import torch
from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.dropout import dropout
from regard.models.config import ModelConfig
from regard.models.kernels import recurrent

Cells = nn.GRU | nn.LSTM


def build_cells(config: ModelConfig, inputs: int, *, bidirectional: bool) -> Cells:
    """Build the cells of a configuration for inputs of this width."""
    shape = config.recurrent
    kind = nn.GRU if shape.cell == "gru" else nn.LSTM
    rate = config.dropout if shape.layers > 1 else 0.0
    return kind(inputs, shape.hidden, shape.layers, bidirectional=bidirectional, dropout=rate)


class HiddenState(NamedTuple):
    """The states of layers of cells and, of an LSTM, its cell states."""

    states: Float[Tensor, "row layer size"]
    cells: Float[Tensor, "row layer size"] | None = None

    @property
    def top(self) -> Float[Tensor, "row size"]:
        """The state of the last layer."""
        return self.states[:, -1]

    def select_rows(self, chosen: slice | Tensor) -> "HiddenState":
        """Return the states of some rows."""
        return HiddenState(self.states[chosen], None if self.cells is None else self.cells[chosen])


class RecurrentOutput(NamedTuple):
    """A vector for each position of each sequence, and the last one of each direction."""

    states: Float[Tensor, "batch length width"]
    last: Float[Tensor, "batch width"]


def run_cells(
    cells: Cells,
    inputs: Float[Tensor, "batch length width"],
    lengths: Int[Tensor, " batch"] | None = None,
    start: HiddenState | None = None,
) -> RecurrentOutput:
    """Return the states at all positions, as the module itself computes them on packed sequences.

    Padding keeps the last state. `start` is for cells of one direction. Dropout between layers has the module's rate,
    while it trains.
    """
    if lengths is None or bool((lengths == inputs.shape[1]).all()):
        return _run_layers(cells, inputs, None, start)
    # The longest first: the sequences that go on at a step are then the first rows, and only they are multiplied.
    order = lengths.argsort(descending=True, stable=True)
    real = torch.arange(inputs.shape[1], device=lengths.device)[:, None] < lengths[order]
    first = None if start is None else start.select_rows(order)
    ran = _run_layers(cells, inputs.index_select(0, order), real, first)
    back = order.argsort()
    return RecurrentOutput(*(part.index_select(0, back) for part in ran))


def _run_layers(cells: Cells, inputs: Tensor, real: Tensor | None, start: HiddenState | None) -> RecurrentOutput:
    stream, sides = inputs.transpose(0, 1), []
    for layer in range(cells.num_layers):
        if layer and cells.training:
            stream = dropout(stream, cells.dropout)
        sides = [_scan(cells, layer, stream, real, start, reverse=way) for way in list_directions(cells)]
        stream = torch.cat(sides, dim=-1) if len(sides) > 1 else sides[0]
    ends = [side[0 if way else -1] for side, way in zip(sides, list_directions(cells), strict=True)]
    return RecurrentOutput(stream.transpose(0, 1), torch.cat(ends, dim=-1))


def step_cells(cells: Cells, vector: Float[Tensor, "row width"], before: HiddenState) -> HiddenState:
    """Return the states of all layers after one more position."""
    states, memories = [], []
    for layer in range(cells.num_layers):
        if layer and cells.training:
            vector = dropout(vector, cells.dropout)
        parts = get_cell_weights(cells, layer)
        if before.cells is None:
            vector = torch.gru_cell(vector, before.states[:, layer], *parts)
        else:
            pair = before.states[:, layer], before.cells[:, layer]
            vector, cell = torch.lstm_cell(vector, pair, *parts)
            memories.append(cell)
        states.append(vector)
    return HiddenState(torch.stack(states, dim=1), torch.stack(memories, dim=1) if memories else None)


def get_cell_weights(cells: Cells, layer: int, *, reverse: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the matrices for input and state, and their biases, in torch's order of gates."""
    end = f"_l{layer}" + ("_reverse" if reverse else "")
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    matrix, hidden, bias, hidden_bias = (getattr(cells, name + end) for name in names)
    return matrix, hidden, bias, hidden_bias


def list_directions(cells: Cells) -> tuple[bool, ...]:
    """Return whether each direction of the cells is reversed."""
    return (False, True) if cells.bidirectional else (False,)


def _scan(
    cells: Cells, layer: int, stream: Tensor, real: Tensor | None, start: HiddenState | None, *, reverse: bool
) -> Tensor:
    matrix, hidden, bias, hidden_bias = get_cell_weights(cells, layer, reverse=reverse)
    inputs = nn.functional.linear(stream, matrix, bias)
    zeros = stream.new_zeros(stream.shape[1], cells.hidden_size)
    first = zeros if start is None else start.states[:, layer]
    if isinstance(cells, nn.GRU):
        return recurrent.gru(inputs, first, hidden, hidden_bias, real=real, reverse=reverse)
    cell = zeros if start is None or start.cells is None else start.cells[:, layer]
    return recurrent.lstm(inputs, (first, cell), hidden, hidden_bias, real=real, reverse=reverse).states
