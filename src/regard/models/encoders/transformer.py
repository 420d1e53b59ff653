"""Transformer encoders."""

from collections.abc import Sequence

from torch import nn

from regard.algebra.shapes import Int, Tensor
from regard.layers.blocks import EncoderBlock
from regard.models.attention_builder import build_self_attention
from regard.models.config import ModelConfig
from regard.models.embedding import build_token_embedding
from regard.models.interface import Encoder, EncoderOutput, build_padding_mask, mean_pool
from regard.models.transformer_parts import build_block_parts, build_last_norm


class TransformerEncoder(Encoder):
    """Blocks of self-attention and feed-forward. Vaswani et al. 2017, §3.1.

    `norm` follows the last block if the blocks have theirs before each part. The `summary` is the mean.

    >>> from regard.models.embedding import TokenEmbedding
    >>> from regard.layers import Attention, FeedForward
    >>> block = EncoderBlock(6, attention=Attention(6, heads=2), feed_forward=FeedForward(6, 24))
    >>> encoder = TransformerEncoder(TokenEmbedding(nn.Embedding(7, 6)), [block], size=6)
    >>> encoder(torch.tensor([[1, 2], [3, 0]]), torch.tensor([2, 1])).states.shape
    torch.Size([2, 2, 6])
    """

    def __init__(
        self, embedding: nn.Module, blocks: Sequence[EncoderBlock], *, size: int, norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.embedding, self.blocks = embedding, nn.ModuleList(blocks)
        self.norm = nn.Identity() if norm is None else norm
        self.width = self.summary = size

    def forward(self, source: Tensor, lengths: Int[Tensor, " batch"]) -> EncoderOutput:
        stream: Tensor = self.embedding(source)
        real = build_padding_mask(lengths, stream.shape[1])
        for block in self.blocks:
            stream = block(stream, real=real)
        stream = self.norm(stream)
        return EncoderOutput(stream, lengths, mean_pool(stream, lengths))


def build_transformer(config: ModelConfig, table: nn.Embedding) -> TransformerEncoder:
    """Build the encoder of a configuration."""
    embedding = build_token_embedding(config, table, "transformer")
    blocks = [
        EncoderBlock(config.size, attention=build_self_attention(config), **build_block_parts(config))
        for _ in range(config.transformer.layers)
    ]
    return TransformerEncoder(embedding, blocks, size=config.size, norm=build_last_norm(config))
