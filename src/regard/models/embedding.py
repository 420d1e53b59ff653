"""Tokens as vectors."""

from torch import nn

from regard.algebra.shapes import Float, Int, Tensor
from regard.compute.kernels.dropout import dropout
from regard.layers.positions import LearnedPositions, SinusoidalPositions, Start
from regard.models.config import ModelConfig


class TokenEmbedding(nn.Module):
    r"""A vector for each token, with its position added if positions are given.

    $$ x_i = c\, E_{y_i} + p_i $$

    with $E$ = `table`, $c$ = `factor` (Vaswani et al. 2017, §3.4 use the square root of the width) and $p$ =
    `positions`.

    >>> TokenEmbedding(nn.Embedding(7, 3))(torch.tensor([[1, 2]])).shape
    torch.Size([1, 2, 3])
    """

    def __init__(
        self,
        table: nn.Embedding,
        *,
        factor: float = 1.0,
        positions: SinusoidalPositions | LearnedPositions | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.table, self.factor, self.positions, self.dropout = table, factor, positions, dropout

    @property
    def width(self) -> int:
        """The width of a vector."""
        return self.table.embedding_dim

    def forward(self, tokens: Int[Tensor, "*lead length"], *, start: Start = 0) -> Float[Tensor, "*lead length width"]:
        """Return the vectors of tokens; `start` is the position of the first one."""
        vectors: Tensor = self.table(tokens)
        if self.factor != 1.0:
            vectors = vectors * self.factor
        if self.positions is not None:
            vectors = self.positions(vectors, start=start)
        return dropout(vectors, self.dropout) if self.training else vectors


def build_token_embedding(config: ModelConfig, table: nn.Embedding, kind: str) -> TokenEmbedding:
    """Build the embedding of an encoder or decoder of this kind, which decides on positions and scale."""
    positions: SinusoidalPositions | LearnedPositions | None = None
    if kind == "convolutional" or (kind == "transformer" and config.transformer.positions == "learned"):
        positions = LearnedPositions(config.longest, config.size)
    elif kind == "transformer" and config.transformer.positions == "sinusoidal":
        positions = SinusoidalPositions(config.size)
    factor = 1.0 if kind == "recurrent" else config.size**0.5
    return TokenEmbedding(table, factor=factor, positions=positions, dropout=config.dropout)
