"""From a configuration to a listener and a speller: one more encoder behind the interface of all decoders."""

from typing import Any

from torch import nn

from regard.models import EncoderDecoder, ModelConfig
from regard.models.builder import build_decoder
from regard.models.config import RecurrentConfig
from regard.models.encoders.pyramidal import PyramidalEncoder
from regard.tasks.speech.config import Listener, SpeechConfig, Speller


def build_speech_model(config: SpeechConfig, *, symbols: int) -> EncoderDecoder[Any]:
    """Return the model of this configuration for a vocabulary of this size.

    >>> type(build_speech_model(SpeechConfig(), symbols=12).decoder.attention).__name__
    'LocationAwareAttention'
    """
    encoder = build_listener(config.listener, config.features.filters)
    table = nn.Embedding(symbols, config.speller.size)
    nn.init.normal_(table.weight, std=config.speller.size**-0.5)
    return EncoderDecoder(encoder, build_decoder(build_model_config(config.speller), table, encoder))


def build_listener(config: Listener, filters: int) -> PyramidalEncoder:
    """Return the pyramidal encoder."""
    kind = nn.GRU if config.cell == "gru" else nn.LSTM
    widths = [filters * config.stack] + [4 * config.hidden] * (config.layers - 1)
    layers = [kind(width, config.hidden, bidirectional=True) for width in widths]
    return PyramidalEncoder(layers, stack=config.stack, dropout=config.dropout)


def build_model_config(config: Speller) -> ModelConfig:
    """Return the configuration of the decoder in the terms of `regard.models`."""
    return ModelConfig(
        decoder=config.decoder,
        size=config.size,
        dropout=config.dropout,
        tied="none",
        recurrent=RecurrentConfig(cell=config.cell, hidden=config.hidden, layers=config.layers),
        attention=config.attention,
    )
