"""Convert a Transformer to CTranslate2; raise for what CTranslate2 does not have."""

import itertools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import InputError, import_package, wrong
from regard.layers.attention import Attention
from regard.layers.blocks import Residual
from regard.layers.positions import LearnedPositions, sinusoids
from regard.layers.projections import HeadProjections, PackedProjections
from regard.models import ModelConfig
from regard.models.embedding import TokenEmbedding
from regard.tasks.data import Vocabulary
from regard.tasks.data.vocabulary import SPECIAL
from regard.tasks.translation import Translator


def to_ctranslate2(translator: Translator, folder: Path) -> None:
    """Write the model for CTranslate2 into a new folder."""
    check_supported(translator.config.model)
    base = import_package("ctranslate2", "ct2").converters.Converter
    made = type("RegardConverter", (base,), {"_load": lambda _: build_specification(translator)})
    made().convert(str(folder))


def check_supported(config: ModelConfig) -> None:
    """Raise if CTranslate2 has no such model."""
    shape = config.transformer
    for kind in ("encoder", "decoder"):
        if getattr(config, kind) != "transformer":
            raise unsupported_error(f"model.{kind}", getattr(config, kind), "transformer")
    if shape.positions == "alibi":
        raise unsupported_error("model.transformer.positions", shape.positions, "sinusoidal, learned or rotary")
    for name, known in (("score", "scaled-dot"), ("normalizer", "softmax")):
        for field in (name, f"source_{name}"):
            if getattr(shape, field) != known:
                raise unsupported_error(f"model.transformer.{field}", getattr(shape, field), known)


UNSUPPORTED = "use --engine torch or --format onnx, or train with --preset transformer-tiny"


def unsupported_error(name: str, got: str, expected: str) -> InputError:
    """Return the error for a setting that CTranslate2 does not have."""
    return wrong(name, got, f"{expected}, which is what CTranslate2 has", UNSUPPORTED)


def build_specification(translator: Translator) -> Any:
    """Return the model as a specification of CTranslate2."""
    config, parts = translator.config.model, import_package("ctranslate2", "ct2").specs.transformer_spec
    encoder: Any = translator.model.encoder
    decoder: Any = translator.model.decoder
    options: dict[str, Any] = {"pre_norm": config.transformer.norm == "pre"}
    if config.transformer.positions == "rotary":
        options |= {"rotary_dim": 0, "rotary_interleave": True}
    heads, counts = config.transformer.heads, (len(encoder.blocks), len(decoder.blocks))
    spec = parts.TransformerSpec(
        parts.TransformerEncoderSpec(counts[0], heads, **options),
        parts.TransformerDecoderSpec(counts[1], heads, alignment_heads=heads, **options),
    )
    set_embeddings(spec.encoder, spec.encoder.embeddings[0], encoder.embedding, config.longest)
    set_embeddings(spec.decoder, spec.decoder.embeddings, decoder.embedding, config.longest)
    for layer, block in zip(spec.encoder.layer, encoder.blocks, strict=True):
        set_self_attention(layer.self_attention, block.attention, block.attention_residual)
        set_feed_forward(layer.ffn, block)
    for layer, block in zip(spec.decoder.layer, decoder.blocks, strict=True):
        set_self_attention(layer.self_attention, block.attention, block.attention_residual)
        set_cross_attention(layer.attention, block.source, block.source_residual)
        set_feed_forward(layer.ffn, block)
    for part, norm in ((spec.encoder, encoder.norm), (spec.decoder, decoder.norm)):
        if isinstance(norm, nn.LayerNorm):
            set_norm(part.layer_norm, norm)
    set_linear(spec.decoder.projection, decoder.output.weight, decoder.output.bias)
    spec.register_source_vocabulary(name_tokens(translator.vocabularies.source))
    spec.register_target_vocabulary(name_tokens(translator.vocabularies.target))
    unknown, begin, end = SPECIAL[1:]
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = unknown, begin, end
    # The caller appends the source's end: if CTranslate2 adds it, it is missing from the attention that it returns.
    spec.config.decoder_start_token, spec.config.add_source_eos = begin, False
    return spec


def set_embeddings(part: Any, embeddings: Any, embedding: TokenEmbedding, longest: int) -> None:
    """Set the vectors of tokens and positions: ours, because CTranslate2 orders sine and cosine otherwise."""
    embeddings.weight = to_array(embedding.table.weight)
    part.scale_embeddings = embedding.factor != 1.0
    table: Tensor
    if isinstance(embedding.positions, LearnedPositions):
        table = embedding.positions.table
    elif embedding.positions is not None:
        table = sinusoids(longest, embedding.width, base=embedding.positions.base)
    else:
        table = torch.zeros(longest, embedding.width)  # rotary: without a table CTranslate2 would add sinusoids
    if hasattr(part, "position_encodings"):
        part.position_encodings.encodings = to_array(table)


def set_self_attention(part: Any, attention: Attention, residual: Residual) -> None:
    """Set self-attention: queries, keys and values in one matrix."""
    set_linear(part.linear[0], *concatenate(split_projections(attention)))
    set_output(part, attention, residual)


def set_cross_attention(part: Any, attention: Attention, residual: Residual) -> None:
    """Set cross-attention: keys and values in one matrix."""
    query, *others = split_projections(attention)
    set_linear(part.linear[0], *query)
    set_linear(part.linear[1], *concatenate(others))
    set_output(part, attention, residual)


def set_output(part: Any, attention: Attention, residual: Residual) -> None:
    """Set the last projection and the norm of an attention."""
    output: Any = attention.projections.output
    set_linear(part.linear[-1], output.weight, output.bias)
    set_norm(part.layer_norm, residual.norm)


Pair = tuple[Tensor, Tensor | None]


def split_projections(attention: Attention) -> list[Pair]:
    """Return matrix and bias of queries, keys and values, one key and value for each head."""
    parts: Any = attention.projections
    if isinstance(parts, PackedProjections):
        stops = (0, parts.widths[0], parts.widths[0] + parts.widths[1], None)
        query, *others = [parts.slice_rows(start or 0, stop) for start, stop in itertools.pairwise(stops)]
    else:
        query, *others = [(part.weight, part.bias) for part in (parts.query, parts.key, parts.value)]
    return [query, *(repeat_groups(pair, parts) for pair in others)]


def repeat_groups(pair: Pair, parts: HeadProjections) -> Pair:
    """Return keys or values of a group once for each of its heads: the same numbers, without groups."""
    times = parts.heads // parts.groups
    weight, bias = pair
    return _repeat(weight, parts.groups, times), None if bias is None else _repeat(bias, parts.groups, times)


def _repeat(rows: Tensor, groups: int, times: int) -> Tensor:
    repeated: Tensor = rows.unflatten(0, (groups, -1)).repeat_interleave(times, 0).flatten(0, 1)
    return repeated


def concatenate(pairs: list[Pair]) -> Pair:
    """Return matrices, and biases if there are any, one below the other."""
    biases = [bias for _, bias in pairs if bias is not None]
    return torch.cat([weight for weight, _ in pairs]), torch.cat(biases) if biases else None


def set_feed_forward(part: Any, block: Any) -> None:
    """Set the feed-forward network of a block."""
    network = block.feed_forward
    set_linear(part.linear_0, network.widen.weight, network.widen.bias)
    set_linear(part.linear_1, network.narrow.weight, network.narrow.bias)
    set_norm(part.layer_norm, block.forward_residual.norm)


def set_linear(part: Any, weight: Tensor, bias: Tensor | None) -> None:
    """Set a matrix, and its bias if it has one."""
    part.weight = to_array(weight)
    if bias is not None:
        part.bias = to_array(bias)


def set_norm(part: Any, norm: nn.LayerNorm) -> None:
    """Set a layer norm."""
    part.gamma, part.beta = to_array(norm.weight), to_array(norm.bias)


def to_array(tensor: Tensor) -> Any:
    """Return the tensor as a float32 array."""
    return tensor.detach().float().cpu().contiguous().numpy()


def name_tokens(vocabulary: Vocabulary) -> list[str]:
    """Return a different name for each token: the id is added to words that are spelled like a special token."""
    tokens = vocabulary.get_tokens(range(len(vocabulary)))
    return [
        f"{name}#{number}" if number >= len(SPECIAL) and name in SPECIAL else name for number, name in enumerate(tokens)
    ]
