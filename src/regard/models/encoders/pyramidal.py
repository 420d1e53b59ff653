"""Encoders of long sources, such as sound: each layer has half the positions of the one below."""

from collections.abc import Sequence

from torch import nn

from regard.algebra.masks import Lengths
from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.dropout import dropout
from regard.errors import wrong
from regard.layers.memory import zero_padding
from regard.models.interface import Encoder, EncoderOutput
from regard.models.recurrence import Cells, run_cells


class PyramidalEncoder(Encoder):
    r"""The listener of *Listen, Attend and Spell*: recurrent layers, each of which reads pairs of the one below.

    $$ h^j_i = f_j(h^j_{i-1}, [h^{j-1}_{2i}; h^{j-1}_{2i+1}]) $$

    with $f_j$ = `layers[j]`, of which the first reads the frames themselves, `stack` of them at once. Chan et al. 2016,
    eq. 5. A decoder then has fewer positions to attend to.

    >>> cells = [nn.LSTM(2 * 3, 5, bidirectional=True), nn.LSTM(2 * 10, 5, bidirectional=True)]
    >>> heard = PyramidalEncoder(cells, stack=2)(torch.ones(2, 17, 3), torch.tensor([17, 6]))
    >>> heard.states.shape, heard.lengths
    (torch.Size([2, 5, 10]), tensor([5, 2]))
    """

    def __init__(self, layers: Sequence[Cells], *, stack: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        if not layers:
            raise wrong("layers", "none", "at least one layer of cells", "give it two or three")
        self.layers = nn.ModuleList(layers)
        self.stack, self.dropout = stack, dropout
        self.width = self.summary = layers[-1].hidden_size * (2 if layers[-1].bidirectional else 1)

    def forward(self, source: Float[Tensor, "batch frame filter"], lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        # Otherwise padding would be part of the last stack, and half of a pair in the layer above.
        source = zero_padding(source, Lengths(lengths))
        states, lengths = stack_frames(source, lengths, self.stack)
        last = states
        for layer, cells in enumerate(self.layers):
            if layer:
                states, lengths = stack_frames(states, lengths, 2)
            states, last = run_cells(cells, self.apply_dropout(states), lengths)  # type: ignore[arg-type]  # of a ModuleList
            states = zero_padding(states, Lengths(lengths))
        return EncoderOutput(states, lengths, last)

    def apply_dropout(self, states: Tensor) -> Tensor:
        return dropout(states, self.dropout) if self.training else states


def stack_frames(
    states: Float[Tensor, "batch long width"], lengths: Int[Tensor, " batch"], count: int
) -> tuple[Float[Tensor, "batch short wide"], Int[Tensor, " batch"]]:
    """Return every `count` neighbors as one vector; zeros fill up the last.

    >>> stack_frames(torch.tensor([[[1.0], [2.0], [3.0]]]), torch.tensor([3]), 2)
    (tensor([[[1., 2.],
             [3., 0.]]]), tensor([2]))
    """
    missing = -states.shape[1] % count
    whole = nn.functional.pad(states, (0, 0, 0, missing))
    return whole.reshape(whole.shape[0], -1, count * whole.shape[2]), (lengths + count - 1) // count
