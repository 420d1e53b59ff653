"""Configurations of models: frozen dataclasses of plain values, from which flags and files are made."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from regard.errors import wrong
from regard.models.decoders import DECODERS
from regard.models.encoders import ENCODERS

if TYPE_CHECKING:  # a type checker cannot read the tables
    EncoderKind = str
    DecoderKind = str
else:
    EncoderKind, DecoderKind = Literal[tuple(ENCODERS)], Literal[tuple(DECODERS)]
Tied = Literal["none", "output", "all"]


@dataclass(frozen=True, slots=True)
class RecurrentConfig:
    """Cells of recurrent encoders and decoders."""

    cell: Literal["gru", "lstm"] = "gru"
    hidden: int = 256  # numbers in a state, in each direction
    layers: int = 1
    bidirectional: bool = True  # the encoder

    def __post_init__(self) -> None:
        check_positive("hidden", self.hidden)
        check_positive("layers", self.layers)


@dataclass(frozen=True, slots=True)
class AttentionConfig:
    """Cross-attention of a recurrent or convolutional decoder."""

    score: str = "additive"  # a name of the catalog: additive, dot, bilinear (Luong's general), concat, location, …
    normalizer: str = "softmax"  # a name of the catalog
    hidden: int = 256  # width that queries and keys are projected to, unless the score takes them as they are
    scope: Literal["global", "local-m", "local-p"] = "global"
    radius: int = 10  # of the local scopes
    coverage: bool = False  # add to each key how much attention it has received
    location: bool = False  # add to each key features of the last weights (Chorowski et al. 2015)
    feeding: bool = False  # Luong's input feeding: the attentional vector is part of the next step's input

    def __post_init__(self) -> None:
        check_positive("hidden", self.hidden)
        check_positive("radius", self.radius)
        if self.coverage and self.location:
            raise wrong("location", "true beside coverage", "one of the two", "set coverage or location to false")


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """Blocks of Transformers."""

    layers: int = 4
    decoder_layers: int = 4
    heads: int = 4
    groups: int | None = None  # of heads that share keys and values; none: as many as heads
    hidden: int = 256  # of the feed-forward network
    norm: Literal["pre", "post"] = "pre"
    positions: Literal["sinusoidal", "learned", "rotary", "alibi"] = "sinusoidal"
    score: str = "scaled-dot"  # of self-attention: a name of the catalog
    normalizer: str = "softmax"
    source_score: str = "scaled-dot"  # of the decoder's attention to the source
    source_normalizer: str = "softmax"
    attention_dropout: float = 0.0
    hidden_dropout: float = 0.0  # inside the feed-forward network, where Vaswani et al. have none

    def __post_init__(self) -> None:
        for name in ("layers", "decoder_layers", "heads", "hidden"):
            check_positive(name, getattr(self, name))
        check_rate("attention_dropout", self.attention_dropout)
        check_rate("hidden_dropout", self.hidden_dropout)


@dataclass(frozen=True, slots=True)
class ConvolutionalConfig:
    """Gated convolutions."""

    layers: int = 4
    decoder_layers: int = 3
    size: int = 256  # channels
    width: int = 3  # positions under a filter

    def __post_init__(self) -> None:
        for name in ("layers", "decoder_layers", "size", "width"):
            check_positive(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """An encoder–decoder. Any encoder goes with any decoder; the tables of other kinds are ignored."""

    encoder: EncoderKind = "transformer"
    decoder: DecoderKind = "transformer"
    size: int = 128  # of token vectors, and of a Transformer's stream
    dropout: float = 0.1
    tied: Tied = "output"  # target embedding and output share one matrix; all: the source embedding too
    longest: int = 512  # sequence, if positions or locations are learned
    recurrent: RecurrentConfig = field(default_factory=RecurrentConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    transformer: TransformerConfig = field(default_factory=TransformerConfig)
    convolutional: ConvolutionalConfig = field(default_factory=ConvolutionalConfig)

    def __post_init__(self) -> None:
        check_positive("size", self.size)
        check_positive("longest", self.longest)
        check_rate("dropout", self.dropout)


def check_positive(name: str, value: int) -> None:
    """Raise unless `value` is at least 1."""
    if value < 1:
        raise wrong(name, value, "at least 1", f"give {name} a value of 1 or more")


def check_rate(name: str, value: float) -> None:
    """Raise unless `value` is a rate of dropout or smoothing."""
    if not 0 <= value < 1:
        raise wrong(name, value, "a rate from 0 to below 1", "use 0 for none")


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
