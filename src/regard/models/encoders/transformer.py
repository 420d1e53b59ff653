"""Transformer encoders."""

from collections.abc import Sequence

from torch import nn

from regard.algebra.shapes import Int, Tensor
from regard.layers.blocks import EncoderBlock
from regard.models.interface import Encoder, EncoderOutput
from regard.models.pooling import mean_pool


class TransformerEncoder(Encoder):
    """Blocks of self-attention and feed-forward. Vaswani et al. 2017, §3.1.

    `norm` comes after the last block, where the blocks have theirs before each part. The `summary` is the mean.

    >>> from regard.models.embedding import TokenEmbedding
    >>> from regard.layers import Attention, FeedForward
    >>> block = EncoderBlock(6, attention=Attention(6, heads=2), feed_forward=FeedForward(6, 24))
    >>> encoder = TransformerEncoder(TokenEmbedding(nn.Embedding(7, 6)), [block], size=6)
    >>> encoder(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1])).states.shape
    torch.Size([2, 2, 6])
    """

    def __init__(
        self, words: nn.Module, blocks: Sequence[EncoderBlock], *, size: int, norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.words, self.blocks = words, nn.ModuleList(blocks)
        self.norm = nn.Identity() if norm is None else norm
        self.width = self.summary = size

    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        stream: Tensor = self.words(source)
        real = EncoderOutput(stream, lengths, stream[:, 0]).mask
        for block in self.blocks:
            stream = block(stream, real=real)
        stream = self.norm(stream)
        return EncoderOutput(stream, lengths, mean_pool(stream, lengths))
