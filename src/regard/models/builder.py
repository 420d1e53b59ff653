"""Models from configurations."""

from importlib import import_module
from typing import Any, cast

from torch import nn

from regard.errors import wrong
from regard.layers.projections import build_linear
from regard.models.config import ModelConfig
from regard.models.decoders import DECODERS
from regard.models.encoders import ENCODERS
from regard.models.interface import Decoder, Encoder
from regard.models.model import EncoderDecoder


def build_model(config: ModelConfig, *, source: int, target: int) -> EncoderDecoder[Any]:
    """Build the model of this configuration for vocabularies of these sizes.

    >>> from regard.models.config import PRESETS
    >>> count_parameters(build_model(PRESETS["transformer-tiny"], source=1000, target=1000))
    1454568
    """
    tables = build_embedding_tables(config, source, target)
    encoder = build_encoder(config, tables[0])
    return EncoderDecoder(encoder, build_decoder(config, tables[1], encoder))


def count_parameters(model: nn.Module) -> int:
    """Count the numbers that are trained; a matrix that is used twice counts once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def build_embedding_tables(config: ModelConfig, source: int, target: int) -> tuple[nn.Embedding, nn.Embedding]:
    """Build the embeddings of source and target: the same one if all is tied."""
    if config.tied == "all" and source != target:
        expected = "one vocabulary for both sides where everything is tied"
        raise wrong("tied", f"'all' for {source} and {target} words", expected, "use a joint vocabulary, or 'output'")
    tables = [nn.Embedding(words, config.size) for words in (source, target)]
    for table in tables:
        nn.init.normal_(table.weight, std=config.size**-0.5)
    return (tables[1], tables[1]) if config.tied == "all" else (tables[0], tables[1])


def build_encoder(config: ModelConfig, table: nn.Embedding) -> Encoder:
    """Build the encoder, whose tokens have the vectors of this table."""
    return cast(Encoder, _import(ENCODERS[config.encoder])(config, table))


def build_decoder(config: ModelConfig, table: nn.Embedding, encoder: Encoder) -> Decoder[Any]:
    """Build the decoder for the output of this encoder."""
    output = build_linear(config.size, table.num_embeddings)
    if config.tied != "none":
        output.weight = table.weight
    return cast(Decoder[Any], _import(DECODERS[config.decoder])(config, table, encoder, output))


def _import(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
