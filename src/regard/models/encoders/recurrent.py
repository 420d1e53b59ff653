"""Recurrent encoders."""

from torch import nn

from regard.algebra.shapes import Int, Tensor
from regard.layers.memory import zero_padding
from regard.models.config import ModelConfig
from regard.models.embedding import build_token_embedding
from regard.models.interface import Encoder, EncoderOutput
from regard.models.recurrence import Cells, build_cells, run_cells


class RecurrentEncoder(Encoder):
    r"""GRU or LSTM cells, in one direction or both, in layers.

    $$ \overrightarrow{h}_j = f(x_j, \overrightarrow{h}_{j-1}), \quad \overleftarrow{h}_j = f(x_j,
    \overleftarrow{h}_{j+1}), \qquad h_j = [\overrightarrow{h}_j; \overleftarrow{h}_j] $$

    Bahdanau et al. 2015, §3.2. `embedding`, any module, turns the source into vectors; the `summary` is the last state
    of each direction.

    >>> from regard.models.embedding import TokenEmbedding
    >>> cells = nn.GRU(3, 5, bidirectional=True)
    >>> encoder = RecurrentEncoder(TokenEmbedding(nn.Embedding(7, 3)), cells)
    >>> encoder(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1])).states.shape
    torch.Size([2, 2, 10])
    """

    def __init__(self, embedding: nn.Module, cells: Cells) -> None:
        super().__init__()
        self.embedding, self.cells = embedding, cells
        self.width = self.summary = cells.hidden_size * (2 if cells.bidirectional else 1)

    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        states, last = run_cells(self.cells, self.embedding(source), lengths)
        encoded = EncoderOutput(states, lengths, last)
        return encoded._replace(states=zero_padding(states, encoded.mask))


def build_recurrent(config: ModelConfig, table: nn.Embedding) -> RecurrentEncoder:
    """Build the encoder of a configuration."""
    cells = build_cells(config, config.size, bidirectional=config.recurrent.bidirectional)
    return RecurrentEncoder(build_token_embedding(config, table, "recurrent"), cells)
