"""A Transformer as CTranslate2 has it. What CTranslate2 cannot express is refused, one sentence each."""

import itertools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import InputError, missing_package, wrong
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
    """Writes the model for CTranslate2 into a new folder."""
    check_supported(translator.config.model)
    base = import_ctranslate2().converters.Converter
    made = type("RegardConverter", (base,), {"_load": lambda _: build_specification(translator)})
    made().convert(str(folder))


def import_ctranslate2() -> Any:
    """CTranslate2, or how to get it."""
    try:
        import ctranslate2
    except ImportError:
        raise missing_package("ctranslate2", "ct2") from None
    return ctranslate2


def check_supported(config: ModelConfig) -> None:
    """Raises where CTranslate2 has no such model."""
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


def unsupported_error(name: str, got: str, expected: str) -> InputError:
    return wrong(name, got, f"{expected}, which is what CTranslate2 has", "use --engine torch, or --format onnx")


def build_specification(translator: Translator) -> Any:
    """The model as CTranslate2 describes models."""
    config, parts = translator.config.model, import_ctranslate2().specs.transformer_spec
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
    # The caller gives the source's end: one that CTranslate2 adds is missing from the attention it returns.
    spec.config.decoder_start_token, spec.config.add_source_eos = begin, False
    return spec


def set_embeddings(part: Any, embeddings: Any, words: TokenEmbedding, longest: int) -> None:
    """Words with their factor, and a vector for each position: ours, because others order sine and cosine otherwise."""
    embeddings.weight = to_array(words.table.weight)
    part.scale_embeddings = words.factor != 1.0
    table: Tensor
    if isinstance(words.positions, LearnedPositions):
        table = words.positions.table
    elif words.positions is not None:
        table = sinusoids(longest, words.width, base=words.positions.base)
    else:
        table = torch.zeros(longest, words.width)  # rotary: without a table it would add sinusoids of its own
    if hasattr(part, "position_encodings"):
        part.position_encodings.encodings = to_array(table)


def set_self_attention(part: Any, attention: Attention, around: Residual) -> None:
    """Self-attention: queries, keys and values in one matrix."""
    matrices = [
        repeat_groups(pair, attention.projections, place) for place, pair in enumerate(split_projections(attention))
    ]
    set_linear(part.linear[0], *(concatenate(list(kind)) for kind in zip(*matrices, strict=True)))
    set_output(part, attention, around)


def set_cross_attention(part: Any, attention: Attention, around: Residual) -> None:
    """Attention to the source: keys and values in one matrix."""
    query, *others = (
        repeat_groups(pair, attention.projections, place) for place, pair in enumerate(split_projections(attention))
    )
    set_linear(part.linear[0], *query)
    set_linear(part.linear[1], *(concatenate(list(kind)) for kind in zip(*others, strict=True)))
    set_output(part, attention, around)


def set_output(part: Any, attention: Attention, around: Residual) -> None:
    output: Any = attention.projections.output
    set_linear(part.linear[-1], output.weight, output.bias)
    set_norm(part.layer_norm, around.norm)


Pair = tuple[Tensor, Tensor | None]


def split_projections(attention: Attention) -> list[Pair]:
    """Matrix and bias of queries, keys and values."""
    parts: Any = attention.projections
    if isinstance(parts, PackedProjections):
        stops = (0, parts.widths[0], parts.widths[0] + parts.widths[1], None)
        return [parts.slice_rows(start or 0, stop) for start, stop in itertools.pairwise(stops)]
    return [(part.weight, part.bias) for part in (parts.query, parts.key, parts.value)]


def repeat_groups(pair: Pair, parts: HeadProjections, place: int) -> Pair:
    """Keys and values of a group, once for each of its heads: the same numbers, without groups."""
    times = parts.heads // parts.groups if place else 1
    weight, bias = (None if part is None else part.unflatten(0, (parts.groups, -1)) for part in pair)
    if times == 1 or weight is None:
        return pair
    bias = None if bias is None else bias.repeat_interleave(times, 0).flatten(0, 1)
    return weight.repeat_interleave(times, 0).flatten(0, 1), bias


def concatenate(parts: list[Tensor | None]) -> Tensor | None:
    """One below the other; None where there are none."""
    there = [part for part in parts if part is not None]
    return torch.cat(there) if there else None


def set_feed_forward(part: Any, block: Any) -> None:
    """The feed-forward network."""
    network = block.feed_forward
    set_linear(part.linear_0, network.widen.weight, network.widen.bias)
    set_linear(part.linear_1, network.narrow.weight, network.narrow.bias)
    set_norm(part.layer_norm, block.forward_residual.norm)


def set_linear(part: Any, weight: Tensor | None, bias: Tensor | None) -> None:
    if weight is not None:
        part.weight = to_array(weight)
    if bias is not None:
        part.bias = to_array(bias)


def set_norm(part: Any, norm: nn.LayerNorm) -> None:
    part.gamma, part.beta = to_array(norm.weight), to_array(norm.bias)


def to_array(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().contiguous().numpy()


def name_tokens(vocabulary: Vocabulary) -> list[str]:
    """A different name for each number: a word of the text that is spelled like a special token gets its number."""
    found = vocabulary.get_tokens(range(len(vocabulary)))
    special = set(SPECIAL)
    return [
        f"{name}#{place}" if place >= len(SPECIAL) and name in special else name for place, name in enumerate(found)
    ]
