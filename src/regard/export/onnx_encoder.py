"""Recurrent encoders as ONNX has them: its own GRU and LSTM, which take any length and know padding."""

from typing import Any

import torch
from torch import Tensor, nn

from regard.models.encoders.recurrent import RecurrentEncoder
from regard.models.interface import Encoder, EncoderOutput
from regard.models.recurrence import get_cell_weights, list_directions

# The indices of ONNX's gates among torch's: update, reset, new of reset, update, new; input, output, forget, cell.
GRU_ORDER, LSTM_ORDER = (1, 0, 2), (0, 3, 1, 2)


class OnnxRecurrentEncoder(Encoder):
    """The same numbers as the encoder, by operators of ONNX. It runs in exported graphs only."""

    def __init__(self, encoder: RecurrentEncoder) -> None:
        super().__init__()
        self.embedding, self.cells = encoder.embedding, encoder.cells
        self.width = self.summary = encoder.width

    def forward(self, source: Tensor, lengths: Tensor) -> EncoderOutput:
        stream = self.embedding(source).transpose(0, 1)
        sides, ends = [stream], [stream[0]]
        for layer in range(self.cells.num_layers):
            pairs = [self.scan(layer, stream, lengths, reverse) for reverse in list_directions(self.cells)]
            sides, ends = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            stream = torch.cat(sides, dim=-1)
        return EncoderOutput(stream.transpose(0, 1), lengths, torch.cat(ends, dim=-1))

    def scan(self, layer: int, stream: Tensor, lengths: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
        """Return all states of one direction of a layer, and its last one."""
        gated = isinstance(self.cells, nn.LSTM)
        order, size = LSTM_ORDER if gated else GRU_ORDER, self.cells.hidden_size
        parts = [reorder_gates(part, order) for part in get_cell_weights(self.cells, layer, reverse=reverse)]
        biases = torch.cat(parts[2:])[None]
        attributes: dict[str, Any] = {"hidden_size": size, "direction": "reverse" if reverse else "forward"}
        if not gated:
            attributes["linear_before_reset"] = 1
        time, rows = stream.shape[:2]
        states, last, *_ = torch.onnx.ops.symbolic_multi_out(
            "LSTM" if gated else "GRU",
            [stream, parts[0][None], parts[1][None], biases, lengths.to(torch.int32)],
            attributes,
            dtypes=[stream.dtype] * (3 if gated else 2),
            shapes=[(time, 1, rows, size), (1, rows, size), (1, rows, size)][: 3 if gated else 2],
            version=14,
        )
        return states[:, 0], last[0]


def reorder_gates(part: Tensor, order: tuple[int, ...]) -> Tensor:
    """Return the gates of a matrix or bias in ONNX's order."""
    gates = part.chunk(len(order))
    return torch.cat([gates[index] for index in order])
