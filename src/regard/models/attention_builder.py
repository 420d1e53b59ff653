"""Attention layers from a configuration."""

from typing import cast

from regard.algebra import catalog
from regard.algebra.biases import Bias
from regard.algebra.catalog import Sizes
from regard.algebra.normalizers import Normalizer, SequentialNormalizer
from regard.algebra.scores import Additive, Score
from regard.errors import wrong
from regard.layers.attention import Attention
from regard.layers.mechanism import Mechanism
from regard.layers.positions import Rotary
from regard.layers.projections import Projections, build_linear
from regard.models.config import ModelConfig
from regard.models.interface import Encoder

ADDITIVE = ("additive", "concat")  # Luong's concat is the same: one matrix for both is a matrix for each
UNPROJECTED = ("dot", "bilinear", "low-rank", "location")  # scores that take the decoder's state as it is


def build_score(name: str, sizes: Sizes) -> Score:
    """Build a score of the catalog."""
    return cast(Score, catalog.find("score", name)(sizes))


def build_normalizer(name: str, sizes: Sizes, *, sequential: bool) -> Normalizer:
    """Build a normalizer of the catalog; one whose rows depend on the rows before only if `sequential`."""
    name = catalog.resolve_name("normalizer", name)
    if name == "local-p":
        fix = 'use scope = "local-p"' if sequential else "write softmax"
        raise wrong("normalizer", repr(name), "one without a center of its own", fix)
    normalizer = cast(Normalizer, catalog.find("normalizer", name)(sizes))
    if isinstance(normalizer, SequentialNormalizer) and not sequential:
        expected = "one whose rows stand alone"
        raise wrong("normalizer", repr(name), expected, "use it for the attention of a recurrent decoder")
    return normalizer


def build_mechanism(config: ModelConfig, score: str, normalizer: str, bias: Bias | None = None) -> Mechanism:
    """Build the mechanism of a Transformer's heads from names of the catalog."""
    heads = config.transformer.heads
    width = config.size // heads
    sizes = Sizes(width, width, width, lead=(heads,), keys=config.longest)
    return Mechanism(
        build_score(score, sizes), bias=bias, normalizer=build_normalizer(normalizer, sizes, sequential=False)
    )


def build_self_attention(config: ModelConfig) -> Attention:
    """Build the self-attention of a Transformer block."""
    shape = config.transformer
    bias = catalog.BIASES["alibi"](Sizes(1, 1, 1, lead=(shape.heads,))) if shape.positions == "alibi" else None
    return Attention(
        config.size,
        heads=shape.heads,
        groups=shape.groups,
        mechanism=build_mechanism(config, shape.score, shape.normalizer, bias),
        rotary=Rotary(config.size // shape.heads) if shape.positions == "rotary" else None,
        dropout=shape.attention_dropout,
    )


def build_cross_attention(config: ModelConfig, query: int, encoder: Encoder, *, sequential: bool = False) -> Attention:
    """Build one head over the source, which projects what its score needs projected; `query` is the queries' width."""
    options, name = config.attention, catalog.resolve_name("score", config.attention.score)
    unprojected = name in UNPROJECTED
    width = compute_key_width(config, query, encoder)
    sizes = Sizes(query if unprojected else width, width, encoder.content, keys=config.longest)
    score = Additive.projected(width) if name in ADDITIVE else build_score(name, sizes)
    projections = Projections(
        query=None if unprojected else build_linear(query, width, bias=False),
        key=None if width == encoder.width and unprojected else build_linear(encoder.width, width),
    )
    normalizer = build_normalizer(options.normalizer, sizes, sequential=sequential)
    return Attention(projections, mechanism=Mechanism(score, normalizer=normalizer))


def compute_key_width(config: ModelConfig, query: int, encoder: Encoder) -> int:
    """Return the width of a key: *dot* needs the query's, the other unprojected scores take the encoder's."""
    name = catalog.resolve_name("score", config.attention.score)
    if name == "dot":
        return query
    return encoder.width if name in UNPROJECTED else config.attention.hidden
