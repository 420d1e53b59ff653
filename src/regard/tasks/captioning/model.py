"""From a configuration to a captioner: an image encoder behind the interface of all, and Bahdanau's decoder."""

from typing import Any

from torch import nn

from regard.layers.projections import build_linear
from regard.models import EncoderDecoder
from regard.models.attention_builder import build_cross_attention
from regard.models.decoders.decoder_attention import DecoderAttention, FixedContext
from regard.models.decoders.recurrent import BahdanauDecoder
from regard.models.decoders.region_attention import AGGREGATES, RegionAttention
from regard.models.embedding import build_token_embedding
from regard.models.encoders.grid import Coordinates, GridEncoder, SmallNetwork
from regard.models.recurrence import build_cells
from regard.tasks.captioning.config import CaptionerConfig
from regard.tasks.captioning.datasets import CaptioningDataset


def build_captioner(config: CaptionerConfig, dataset: CaptioningDataset, words: int) -> EncoderDecoder[Any]:
    """Return a captioner for these images and a vocabulary of `words` words."""
    encoder = build_image_encoder(config, dataset)
    shape, table = config.decoder, nn.Embedding(words, config.size)
    nn.init.normal_(table.weight, std=config.size**-0.5)
    output = build_linear(config.size, words)
    output.weight = table.weight
    reader = build_captioner_attention(config, encoder)
    cells = build_cells(shape, config.size + reader.width, bidirectional=False)
    known = build_token_embedding(shape, table, "recurrent")
    decoder = BahdanauDecoder(known, cells, reader, output, summary=encoder.summary, dropout=config.dropout)
    return EncoderDecoder(encoder, decoder)


def build_image_encoder(config: CaptionerConfig, dataset: CaptioningDataset) -> GridEncoder:
    """Return an encoder of pixels with a trained network, or of precomputed features without one."""
    network: nn.Module = nn.Identity()
    if dataset.channels is None:
        network = nn.Sequential(Coordinates(), SmallNetwork(config.channels, colors=5))
    channels = dataset.channels or config.channels[-1]
    return GridEncoder(network, channels=channels, width=config.width, regions=dataset.regions, dropout=config.dropout)


def build_captioner_attention(config: CaptionerConfig, encoder: GridEncoder) -> DecoderAttention:
    """Return soft, hard or no attention."""
    if config.attention == "none":
        return FixedContext(encoder.summary)
    kind = AGGREGATES[config.attention]
    reading = kind(config.temperature) if config.attention.startswith("gumbel") else kind()
    attention = build_cross_attention(config.decoder, config.hidden, encoder)
    return RegionAttention(attention, query=config.hidden, width=encoder.content, aggregate=reading, gated=config.gated)
