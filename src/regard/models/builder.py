"""From a configuration to a model."""

from typing import Any, cast

from torch import nn

from regard.algebra import catalog
from regard.algebra.biases import Bias
from regard.algebra.catalog import Sizes
from regard.algebra.normalizers import Normalizer, SequentialNormalizer
from regard.algebra.scores import Additive, Score
from regard.errors import wrong
from regard.layers.attention import Attention
from regard.layers.blocks import DecoderBlock, EncoderBlock, FeedForward, PostNorm, PreNorm, Residual
from regard.layers.location import Coverage, LocationFeatures
from regard.layers.mechanism import Mechanism
from regard.layers.positions import LearnedPositions, RotaryPositions, SinusoidalPositions
from regard.layers.projections import Projections, build_linear
from regard.models.config import ModelConfig
from regard.models.convolution import GatedConvolution
from regard.models.decoders.convolutional import ConvolutionalDecoder, ConvolutionalStage
from regard.models.decoders.decoder_attention import (
    AttentionScope,
    ContentAttention,
    CoverageAttention,
    DecoderAttention,
    FixedContext,
    GlobalScope,
    LocationAwareAttention,
    MonotonicAttention,
    MonotonicScope,
    PredictiveScope,
)
from regard.models.decoders.recurrent import BahdanauDecoder, InputFeedingDecoder, LuongDecoder
from regard.models.decoders.transformer import TransformerDecoder
from regard.models.embedding import TokenEmbedding
from regard.models.encoders.convolutional import ConvolutionalEncoder
from regard.models.encoders.recurrent import RecurrentEncoder
from regard.models.encoders.transformer import TransformerEncoder
from regard.models.interface import Decoder, Encoder
from regard.models.model import EncoderDecoder
from regard.models.recurrence import Cells


def build_model(config: ModelConfig, *, source: int, target: int) -> EncoderDecoder[Any]:
    """The model of this configuration for vocabularies of these sizes.

    >>> from regard.models.config import PRESETS
    >>> count_parameters(build_model(PRESETS["transformer-tiny"], source=1000, target=1000))
    1454568
    """
    tables = build_embedding_tables(config, source, target)
    encoder = build_encoder(config, tables[0])
    return EncoderDecoder(encoder, build_decoder(config, tables[1], encoder))


def count_parameters(model: nn.Module) -> int:
    """The numbers that are trained; a matrix that is used twice counts once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def build_embedding_tables(config: ModelConfig, source: int, target: int) -> tuple[nn.Embedding, nn.Embedding]:
    """Vectors for the words of both sides: the same ones where all is tied."""
    if config.tied == "all" and source != target:
        expected = "one vocabulary for both sides where everything is tied"
        raise wrong("tied", f"'all' for {source} and {target} words", expected, "use a joint vocabulary, or 'output'")
    tables = [nn.Embedding(words, config.size) for words in (source, target)]
    for table in tables:
        nn.init.normal_(table.weight, std=config.size**-0.5)
    return (tables[1], tables[1]) if config.tied == "all" else (tables[0], tables[1])


def build_token_embedding(config: ModelConfig, table: nn.Embedding, kind: str) -> TokenEmbedding:
    """Words for an encoder or decoder of this kind, which decides on their positions and scale."""
    positions: SinusoidalPositions | LearnedPositions | None = None
    if kind == "convolutional" or (kind == "transformer" and config.transformer.positions == "learned"):
        positions = LearnedPositions(config.longest, config.size)
    elif kind == "transformer" and config.transformer.positions == "sinusoidal":
        positions = SinusoidalPositions(config.size)
    factor = 1.0 if kind == "recurrent" else config.size**0.5
    return TokenEmbedding(table, factor=factor, positions=positions, dropout=config.dropout)


def build_encoder(config: ModelConfig, table: nn.Embedding) -> Encoder:
    """The encoder."""
    words = build_token_embedding(config, table, config.encoder)
    if config.encoder == "recurrent":
        return RecurrentEncoder(words, build_cells(config, config.size, bidirectional=config.recurrent.bidirectional))
    if config.encoder == "convolutional":
        shape = config.convolutional
        convolutions = [build_convolution(config) for _ in range(shape.layers)]
        return ConvolutionalEncoder(words, convolutions, words=config.size, size=shape.size)
    blocks = [build_encoder_block(config) for _ in range(config.transformer.layers)]
    return TransformerEncoder(words, blocks, size=config.size, norm=build_last_norm(config))


def build_decoder(config: ModelConfig, table: nn.Embedding, encoder: Encoder) -> Decoder[Any]:
    """The decoder that reads what this encoder gives."""
    output = build_linear(config.size, table.num_embeddings)
    if config.tied != "none":
        output.weight = table.weight
    if config.decoder == "transformer":
        words = build_token_embedding(config, table, "transformer")
        blocks = [build_decoder_block(config, encoder) for _ in range(config.transformer.decoder_layers)]
        return TransformerDecoder(words, blocks, output, norm=build_last_norm(config))
    if config.decoder == "convolutional":
        words, size = build_token_embedding(config, table, "convolutional"), config.convolutional.size
        stages = [build_stage(config, encoder) for _ in range(config.convolutional.decoder_layers)]
        return ConvolutionalDecoder(words, stages, output, size=size, dropout=config.dropout)
    return build_recurrent_decoder(config, build_token_embedding(config, table, "recurrent"), encoder, output)


def build_recurrent_decoder(
    config: ModelConfig, words: TokenEmbedding, encoder: Encoder, output: nn.Linear
) -> Decoder[Any]:
    """A decoder with cells, and attention before, after or nowhere."""
    reader = FixedContext(encoder.summary) if config.decoder == "plain" else build_decoder_attention(config, encoder)
    kind = (
        BahdanauDecoder
        if config.decoder != "luong"
        else InputFeedingDecoder
        if config.attention.feeding
        else LuongDecoder
    )
    inputs = {BahdanauDecoder: reader.width, InputFeedingDecoder: output.in_features, LuongDecoder: 0}[kind]
    cells = build_cells(config, config.size + inputs, bidirectional=False)
    return kind(words, cells, reader, output, summary=encoder.summary, dropout=config.dropout)


def build_cells(config: ModelConfig, inputs: int, *, bidirectional: bool) -> Cells:
    """Layers of cells."""
    shape = config.recurrent
    kind = nn.GRU if shape.cell == "gru" else nn.LSTM
    rate = config.dropout if shape.layers > 1 else 0.0
    return kind(inputs, shape.hidden, shape.layers, bidirectional=bidirectional, dropout=rate)


def build_convolution(config: ModelConfig) -> GatedConvolution:
    """One gated convolution."""
    shape = config.convolutional
    return GatedConvolution(shape.size, width=shape.width, dropout=config.dropout)


def build_stage(config: ModelConfig, encoder: Encoder) -> ConvolutionalStage:
    """One layer of a convolutional decoder."""
    shape = config.convolutional
    attention = build_cross_attention(config, config.size, encoder)
    return ConvolutionalStage(
        build_convolution(config), attention, words=config.size, size=shape.size, content=encoder.content
    )


def build_encoder_block(config: ModelConfig) -> EncoderBlock:
    """One block of a Transformer encoder."""
    return EncoderBlock(
        config.size,
        attention=build_self_attention(config),
        feed_forward=build_feed_forward(config),
        residual=choose_residual(config),
        dropout=config.dropout,
    )


def build_feed_forward(config: ModelConfig) -> FeedForward:
    """The feed-forward network of a block."""
    return FeedForward(config.size, config.transformer.hidden, dropout=config.transformer.hidden_dropout)


def build_decoder_block(config: ModelConfig, encoder: Encoder) -> DecoderBlock:
    """One block of a Transformer decoder."""
    shape = config.transformer
    mechanism = build_mechanism(config, shape.source_score, shape.source_normalizer, None)
    own = build_self_attention(config)
    source = Attention(
        Projections.linear(
            config.size, heads=shape.heads, groups=shape.groups, source=encoder.width, content=encoder.content
        ),
        mechanism=mechanism,
        dropout=shape.attention_dropout,
    )
    return DecoderBlock(
        config.size,
        attention=own,
        source=source,
        feed_forward=build_feed_forward(config),
        residual=choose_residual(config),
        dropout=config.dropout,
    )


def choose_residual(config: ModelConfig) -> type[Residual]:
    """Where the norms stand."""
    return PreNorm if config.transformer.norm == "pre" else PostNorm


def build_last_norm(config: ModelConfig) -> nn.Module | None:
    """The norm after the last block, where the others stand before."""
    return nn.LayerNorm(config.size) if config.transformer.norm == "pre" else None


def build_self_attention(config: ModelConfig) -> Attention:
    """Attention of a sequence to itself."""
    shape = config.transformer
    bias = catalog.BIASES["alibi"](Sizes(1, 1, 1, lead=(shape.heads,))) if shape.positions == "alibi" else None
    return Attention(
        config.size,
        heads=shape.heads,
        groups=shape.groups,
        mechanism=build_mechanism(config, shape.score, shape.normalizer, bias),
        rotary=RotaryPositions(config.size // shape.heads) if shape.positions == "rotary" else None,
        dropout=shape.attention_dropout,
    )


def build_mechanism(config: ModelConfig, score: str, normalizer: str, bias: Bias | None) -> Mechanism:
    """How the heads of a Transformer read: parts of the catalog by name."""
    width = config.size // config.transformer.heads
    sizes = Sizes(width, width, width, lead=(config.transformer.heads,), keys=config.longest)
    return Mechanism(
        build_score(score, sizes), bias=bias, normalizer=build_normalizer(normalizer, sizes, sequential=False)
    )


def build_score(name: str, sizes: Sizes) -> Score:
    """A score of the catalog."""
    return cast(Score, catalog.find("score", name)(sizes))


def build_normalizer(name: str, sizes: Sizes, *, sequential: bool) -> Normalizer:
    """A normalizer of the catalog that a model can step with."""
    if name == "local-p":
        fix = 'use scope = "local-p"' if sequential else "write softmax"
        raise wrong("normalizer", repr(name), "one without a center of its own", fix)
    found = cast(Normalizer, catalog.find("normalizer", name)(sizes))
    if isinstance(found, SequentialNormalizer) and not sequential:
        expected = "one whose rows stand alone"
        raise wrong("normalizer", repr(name), expected, "use it for the reading of a recurrent decoder")
    return found


def build_decoder_attention(config: ModelConfig, encoder: Encoder) -> DecoderAttention:
    """How a recurrent decoder reads."""
    reading, size = config.attention, config.recurrent.hidden
    attention = build_cross_attention(config, size, encoder, sequential=True)
    gaze: AttentionScope = GlobalScope(attention)
    if reading.scope == "local-m":
        gaze = MonotonicScope(attention, radius=reading.radius)
    elif reading.scope == "local-p":
        gaze = PredictiveScope(attention, radius=reading.radius, size=size)
    if isinstance(attention.mechanism.normalizer, SequentialNormalizer):
        if reading.coverage or reading.location or reading.scope != "global":
            got, expected = f"{reading.normalizer} with a trail or a local gaze", "a walk over the whole source"
            fix = 'use scope = "global", coverage = false and location = false'
            raise wrong("reading.normalizer", got, expected, fix)
        return MonotonicAttention(gaze, width=encoder.content)
    if reading.coverage:
        return CoverageAttention(gaze, Coverage(compute_key_width(config, size, encoder)), width=encoder.content)
    if reading.location:
        return LocationAwareAttention(
            gaze, LocationFeatures(compute_key_width(config, size, encoder)), width=encoder.content
        )
    return ContentAttention(gaze, width=encoder.content)


def build_cross_attention(config: ModelConfig, query: int, encoder: Encoder, *, sequential: bool = False) -> Attention:
    """One head with the score and normalizer of the catalog, that projects what the score needs projected."""
    reading = config.attention
    width = compute_key_width(config, query, encoder)
    sizes = Sizes(query if takes_raw_query(reading.score) else width, width, encoder.content, keys=config.longest)
    score = Additive(width) if reading.score in ADDITIVE else build_score(reading.score, sizes)
    projections = Projections(
        query=None if takes_raw_query(reading.score) else build_linear(query, width, bias=False),
        key=None if width == encoder.width and takes_raw_query(reading.score) else build_linear(encoder.width, width),
    )
    normalizer = build_normalizer(reading.normalizer, sizes, sequential=sequential)
    return Attention(projections, mechanism=Mechanism(score, normalizer=normalizer))


ADDITIVE = ("additive", "concat")  # Luong's concat is the same: one matrix for both is a matrix for each
RAW = ("dot", "bilinear", "low-rank", "location")  # these take the decoder's state as it is


def takes_raw_query(score: str) -> bool:
    """Whether the score takes the query as it is."""
    return score in RAW


def compute_key_width(config: ModelConfig, query: int, encoder: Encoder) -> int:
    """What a key is wide: *dot* wants the query's width, *bilinear* and *location* take the states as they are."""
    if config.attention.score == "dot":
        return query
    return encoder.width if takes_raw_query(config.attention.score) else config.attention.hidden
