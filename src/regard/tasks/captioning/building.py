"""From a configuration to a captioner: an image encoder behind the interface of all, and Bahdanau's decoder."""

from typing import Any

from torch import nn

from regard.layers.projections import dense
from regard.models import Model
from regard.models.build import cells_of, reading_attention, words_of
from regard.models.decoders.glancing import READINGS, Glancing
from regard.models.decoders.reading import Reader, Summary
from regard.models.decoders.recurrent import Bahdanau
from regard.models.encoders.grid import Coordinates, GridEncoder, SmallNetwork
from regard.tasks.captioning.collections import Album
from regard.tasks.captioning.config import CaptionerConfig


def build(config: CaptionerConfig, album: Album, words: int) -> Model[Any]:
    """The captioner for these images and so many words."""
    encoder = encoder_of(config, album)
    shape, table = config.decoder, nn.Embedding(words, config.size)
    nn.init.normal_(table.weight, std=config.size**-0.5)
    output = dense(config.size, words)
    output.weight = table.weight
    reader = reader_of(config, encoder)
    cells = cells_of(shape, config.size + reader.width, bidirectional=False)
    known = words_of(shape, table, "recurrent")
    decoder = Bahdanau(known, cells, reader, output, summary=encoder.summary, dropout=config.dropout)
    return Model(encoder, decoder)


def encoder_of(config: CaptionerConfig, album: Album) -> GridEncoder:
    """For pixels with a network that is learned, for features that are there already with none."""
    network: nn.Module = nn.Identity()
    if album.channels is None:
        network = nn.Sequential(Coordinates(), SmallNetwork(config.channels, colors=5))
    channels = album.channels or config.channels[-1]
    return GridEncoder(network, channels=channels, width=config.width, regions=album.regions, dropout=config.dropout)


def reader_of(config: CaptionerConfig, encoder: GridEncoder) -> Reader:
    """Soft, hard or no attention."""
    if config.attention == "none":
        return Summary(encoder.summary)
    kind = READINGS[config.attention]
    reading = kind(config.temperature) if config.attention.startswith("gumbel") else kind()
    attention = reading_attention(config.decoder, config.hidden, encoder)
    return Glancing(attention, query=config.hidden, width=encoder.content, reading=reading, gated=config.gated)
