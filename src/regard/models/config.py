"""Configurations of models: frozen dataclasses of plain values, from which flags and files are made."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from regard.errors import wrong
from regard.models.decoders import DECODERS
from regard.models.encoders import ENCODERS
from regard.models.ranges import CheckedConfig, Count, Rate

if TYPE_CHECKING:  # a type checker cannot read the tables
    EncoderKind = str
    DecoderKind = str
else:
    EncoderKind, DecoderKind = Literal[tuple(ENCODERS)], Literal[tuple(DECODERS)]
Tied = Literal["none", "output", "all"]


@dataclass(frozen=True, slots=True)
class RecurrentConfig(CheckedConfig):
    """Cells of recurrent encoders and decoders."""

    cell: Literal["gru", "lstm"] = "gru"
    hidden: Count = 256  # numbers in a state, in each direction
    layers: Count = 1  # of cells
    bidirectional: bool = True  # the encoder


@dataclass(frozen=True, slots=True)
class AttentionConfig(CheckedConfig):
    """Cross-attention of a recurrent or convolutional decoder."""

    score: str = "additive"  # a name of the catalog: additive, dot, bilinear (Luong's general), concat, location, …
    normalizer: str = "softmax"  # a name of the catalog
    hidden: Count = 256  # width that queries and keys are projected to, unless the score takes them as they are
    scope: Literal["global", "local-m", "local-p"] = "global"
    radius: Count = 10  # of the local scopes
    coverage: bool = False  # add to each key how much attention it has received
    location: bool = False  # add to each key features of the last weights (Chorowski et al. 2015)
    feeding: bool = False  # Luong's input feeding: the attentional vector is part of the next step's input

    def check(self) -> None:
        if self.coverage and self.location:
            raise wrong("location", "true beside coverage", "one of the two", "set coverage or location to false")


@dataclass(frozen=True, slots=True)
class TransformerConfig(CheckedConfig):
    """Blocks of Transformers."""

    layers: Count = 4  # of the encoder
    decoder_layers: Count = 4  # of the decoder
    heads: Count = 4  # of each attention
    groups: int | None = None  # of heads that share keys and values; none: as many as heads
    hidden: Count = 256  # of the feed-forward network
    norm: Literal["pre", "post"] = "pre"
    positions: Literal["sinusoidal", "learned", "rotary", "alibi"] = "sinusoidal"
    score: str = "scaled-dot"  # of self-attention: a name of the catalog
    normalizer: str = "softmax"  # of self-attention: a name of the catalog
    source_score: str = "scaled-dot"  # of the decoder's attention to the source
    source_normalizer: str = "softmax"  # of the decoder's attention to the source: a name of the catalog
    attention_dropout: Rate = 0.0  # of the weights
    hidden_dropout: Rate = 0.0  # inside the feed-forward network, where Vaswani et al. have none


@dataclass(frozen=True, slots=True)
class ConvolutionalConfig(CheckedConfig):
    """Gated convolutions."""

    layers: Count = 4  # of the encoder
    decoder_layers: Count = 3  # of the decoder
    size: Count = 256  # channels
    width: Count = 3  # positions under a filter


@dataclass(frozen=True, slots=True)
class ModelConfig(CheckedConfig):
    """An encoder–decoder. Any encoder goes with any decoder; the tables of other kinds are ignored."""

    encoder: EncoderKind = "transformer"
    decoder: DecoderKind = "transformer"
    size: Count = 128  # of token vectors, and of a Transformer's stream
    dropout: Rate = 0.1  # rate of dropout, while training
    tied: Tied = "output"  # target embedding and output share one matrix; all: the source embedding too
    longest: Count = 512  # sequence, if positions or locations are learned
    recurrent: RecurrentConfig = field(default_factory=RecurrentConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    transformer: TransformerConfig = field(default_factory=TransformerConfig)
    convolutional: ConvolutionalConfig = field(default_factory=ConvolutionalConfig)


BAHDANAU = ModelConfig(encoder="recurrent", decoder="bahdanau", size=256, dropout=0.3)
LUONG = replace(
    BAHDANAU, decoder="luong", recurrent=RecurrentConfig(cell="lstm"), attention=AttentionConfig(score="bilinear")
)
PRESETS: dict[str, ModelConfig] = {
    "bahdanau": BAHDANAU,
    "luong": LUONG,
    "luong-feeding": replace(LUONG, attention=AttentionConfig(score="bilinear", feeding=True)),
    "rnn-plain": replace(BAHDANAU, decoder="plain"),
    # Wu et al. 2021, the smallest and best of theirs on Multi30k.
    "transformer-tiny": ModelConfig(size=128, dropout=0.3, tied="all"),
    "transformer-base": ModelConfig(
        size=512,
        tied="all",
        transformer=TransformerConfig(layers=6, decoder_layers=6, heads=8, hidden=2048, norm="post"),
    ),
    "conv-tiny": ModelConfig(
        encoder="convolutional", decoder="convolutional", size=128, dropout=0.2, attention=AttentionConfig(score="dot")
    ),
}
