"""What the blocks of Transformer encoders and decoders have in common, from a configuration."""

from typing import TypedDict

from torch import nn

from regard.layers.blocks import FeedForward, PostNorm, PreNorm, Residual
from regard.models.config import ModelConfig


class BlockParts(TypedDict):
    """Arguments of encoder and decoder blocks."""

    feed_forward: nn.Module
    residual: type[Residual]
    dropout: float


def build_block_parts(config: ModelConfig) -> BlockParts:
    """Build what every block has beside its attention."""
    shape = config.transformer
    return {
        "feed_forward": FeedForward(config.size, shape.hidden, dropout=shape.hidden_dropout),
        "residual": PreNorm if shape.norm == "pre" else PostNorm,
        "dropout": config.dropout,
    }


def build_last_norm(config: ModelConfig) -> nn.Module | None:
    """Build the norm after the last block, which blocks that normalize first need."""
    return nn.LayerNorm(config.size) if config.transformer.norm == "pre" else None
