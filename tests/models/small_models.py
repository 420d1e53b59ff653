"""Small models of every kind, in float64."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.models import EncoderDecoder, EncoderOutput, ModelConfig, build_model
from regard.models.config import AttentionConfig, ConvolutionalConfig, RecurrentConfig, TransformerConfig

B, S, T, V, W = 3, 7, 5, 13, 17  # batch, source, target, target and source vocabulary
LENGTHS = torch.tensor([7, 2, 5])

RECURRENT = ModelConfig(
    encoder="recurrent",
    decoder="bahdanau",
    size=8,
    dropout=0.2,
    recurrent=RecurrentConfig(hidden=6, layers=1),
    attention=AttentionConfig(hidden=5, radius=2),
)
TRANSFORMER = ModelConfig(
    size=12,
    dropout=0.2,
    transformer=TransformerConfig(layers=2, decoder_layers=2, heads=3, hidden=10),
)


def with_reading(decoder: str, **changes: Any) -> ModelConfig:
    return replace(RECURRENT, decoder=decoder, attention=replace(RECURRENT.attention, **changes))


def with_blocks(**changes: Any) -> ModelConfig:
    return replace(TRANSFORMER, transformer=replace(TRANSFORMER.transformer, **changes))


CONFIGS: dict[str, ModelConfig] = {
    "bahdanau": RECURRENT,
    "bahdanau-lstm-2": replace(RECURRENT, recurrent=RecurrentConfig(cell="lstm", hidden=6, layers=2)),
    "bahdanau-coverage": with_reading("bahdanau", coverage=True),
    "bahdanau-aware": with_reading("bahdanau", location=True),
    "luong-feeding-aware": with_reading("luong", score="cosine", feeding=True, location=True),
    "bahdanau-sparse": with_reading("bahdanau", normalizer="sparsemax"),
    "bahdanau-monotonic": with_reading("bahdanau", normalizer="monotonic"),
    "plain": replace(RECURRENT, decoder="plain"),
    "luong-dot": with_reading("luong", score="dot"),
    "luong-general": with_reading("luong", score="bilinear"),
    "luong-concat": with_reading("luong", score="concat"),
    "luong-location": with_reading("luong", score="location"),
    "luong-local-m": with_reading("luong", score="bilinear", scope="local-m"),
    "luong-local-p": with_reading("luong", score="bilinear", scope="local-p"),
    "luong-concat-local-p": with_reading("luong", score="concat", scope="local-p"),
    "luong-feeding": with_reading("luong", score="bilinear", feeding=True),
    "luong-feeding-local-p": with_reading("luong", score="dot", feeding=True, scope="local-p"),
    "luong-coverage": with_reading("luong", score="additive", coverage=True),
    "luong-chunkwise": with_reading("luong", score="additive", normalizer="chunkwise"),
    "luong-gaussian": with_reading("luong", score="gaussian"),
    "transformer": TRANSFORMER,
    "transformer-post": with_blocks(norm="post", positions="learned"),
    "transformer-rotary-grouped": with_blocks(positions="rotary", heads=6, groups=2),
    "transformer-alibi": with_blocks(positions="alibi", groups=1),
    "transformer-additive": with_blocks(score="additive", source_score="cosine", source_normalizer="entmax-1.5"),
    "transformer-location": with_blocks(score="location", source_score="location"),
    "convolutional": replace(
        TRANSFORMER,
        encoder="convolutional",
        decoder="convolutional",
        convolutional=ConvolutionalConfig(layers=2, decoder_layers=2, size=10, width=3),
        attention=AttentionConfig(score="dot"),
    ),
    "recurrent-transformer": replace(TRANSFORMER, encoder="recurrent", recurrent=RecurrentConfig(hidden=6)),
    "transformer-bahdanau": replace(RECURRENT, encoder="transformer", size=12, transformer=TRANSFORMER.transformer),
    "convolutional-luong": replace(
        with_reading("luong", score="dot"),
        encoder="convolutional",
        convolutional=ConvolutionalConfig(layers=1, size=10),
    ),
}


def make(name: str) -> EncoderDecoder[Any]:
    """Return a model in evaluation, with biases that are not zero."""
    torch.manual_seed(7)
    model = build_model(CONFIGS[name], source=W, target=V).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def draw_sources() -> Tensor:
    return torch.randint(W, (B, S), generator=torch.Generator().manual_seed(3))


def draw_targets() -> Tensor:
    return torch.randint(V, (B, T), generator=torch.Generator().manual_seed(4))


def encode_sources(model: EncoderDecoder[Any]) -> EncoderOutput:
    return model.encode(draw_sources(), LENGTHS)
