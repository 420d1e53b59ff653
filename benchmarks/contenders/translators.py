"""Models that translate, ours and the peers', of the same sizes.

Transformers have one table for the words of both sides and the output, and are normed first, as `transformer-tiny` is,
but Marian's, which knows only norms last. Recurrent ones read both ways with gated units and look by additive
attention: ours before the cell, as in the paper; JoeyNMT's and OpenNMT-py's after it, telling the next step what they
saw (input feeding), which is the closest that they have. OpenNMT-py halves the units of the encoder between its two
directions, and so has less to do.
"""

import importlib
from argparse import Namespace
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal

import torch
from torch import nn

from benchmarks.contenders.peer_modules import borrow
from benchmarks.contenders.text import BEGIN, END, PADDING, UNKNOWN, Text
from regard.models import PRESETS, ModelConfig, build_model


@dataclass(frozen=True, slots=True)
class Shape:
    """`size` of words and states; `layers` of each stack and `heads` are a Transformer's."""

    kind: Literal["transformer", "recurrent"]
    vocabulary: int
    size: int
    layers: int = 1
    heads: int = 1
    dropout: float = 0.3


def ours(shape: Shape) -> Any:
    """Our model."""
    return build_model(build_config(shape), source=shape.vocabulary, target=shape.vocabulary)


def build_config(shape: Shape) -> ModelConfig:
    """Our preset in this shape."""
    preset = PRESETS["bahdanau" if shape.kind == "recurrent" else "transformer-tiny"]
    blocks = replace(preset.transformer, layers=shape.layers, decoder_layers=shape.layers, heads=shape.heads)
    return replace(
        preset,
        size=shape.size,
        dropout=shape.dropout,
        recurrent=replace(preset.recurrent, hidden=shape.size),
        attention=replace(preset.attention, hidden=shape.size),
        transformer=replace(blocks, hidden=2 * shape.size, hidden_dropout=shape.dropout),
    )


def joeynmt(shape: Shape) -> Any:
    """JoeyNMT's model."""
    names = {"unk": UNKNOWN, "pad": PADDING, "bos": BEGIN, "eos": END}
    marks = {f"{name}_token": f"<{name}>" for name in names} | {f"{name}_id": place for name, place in names.items()}
    special = SimpleNamespace(**marks, sep_token=None, sep_id=None, lang_tags=[])
    words = [str(number) for number in range(shape.vocabulary - len(names))]
    vocabulary = borrow("joeynmt.vocabulary").Vocabulary(words, special)
    stack = (
        _configure_joeynmt_transformer(shape) if shape.kind == "transformer" else _configure_joeynmt_recurrent(shape)
    )
    tied = {"tied_embeddings": shape.kind == "transformer", "tied_softmax": True}
    return borrow("joeynmt.model").build_model({**tied, **stack}, vocabulary, vocabulary)


def _configure_joeynmt_transformer(shape: Shape) -> dict[str, Any]:
    words = {"embedding_dim": shape.size, "scale": True, "dropout": shape.dropout}
    each = {
        "type": "transformer",
        "num_layers": shape.layers,
        "num_heads": shape.heads,
        "embeddings": words,
        "hidden_size": shape.size,
        "ff_size": 2 * shape.size,
        "dropout": shape.dropout,
        "layer_norm": "pre",
    }
    return {"encoder": each, "decoder": each}


def _configure_joeynmt_recurrent(shape: Shape) -> dict[str, Any]:
    words = {"embedding_dim": shape.size, "scale": False, "dropout": shape.dropout}
    each = {"type": "recurrent", "rnn_type": "gru", "embeddings": words, "hidden_size": shape.size, "num_layers": 1}
    reading = {"attention": "bahdanau", "input_feeding": True, "hidden_dropout": shape.dropout}
    return {"encoder": {**each, "bidirectional": True}, "decoder": {**each, **reading}}


def build_joeynmt_batch(text: Text) -> Any:
    """Return the sentences as JoeyNMT has them."""
    batch = borrow("joeynmt.batch").Batch(
        src=text.source,
        src_length=text.source_lengths,
        src_prompt_mask=None,
        trg=text.target,
        trg_prompt_mask=None,
        indices=torch.arange(len(text.source)),
        device=torch.device("cpu"),
        pad_index=PADDING,
        eos_index=END,
    )
    batch.sort_by_src_length()  # which its recurrent encoder needs
    return batch


class OpenVocabulary(dict[str, int]):
    """Words as OpenNMT-py looks them up: the special ones by name, the others only counted."""

    def __init__(self, size: int) -> None:
        super().__init__({"<unk>": UNKNOWN, "<blank>": PADDING, "<s>": BEGIN, "</s>": END})
        self.size = size

    def __len__(self) -> int:
        return self.size

    def lookup_token(self, token: str) -> int:
        return self.get(token, UNKNOWN)


def opennmt(shape: Shape) -> Any:
    """OpenNMT-py's model. Its optional parts are off; those that it reads the setting of are named all the same."""
    transformer = shape.kind == "transformer"
    options = Namespace(
        **dict.fromkeys(OPENNMT_OFF, False),
        **dict.fromkeys(("src_word_vec_size", "tgt_word_vec_size", "enc_hid_size", "dec_hid_size"), shape.size),
        **dict.fromkeys(("enc_layers", "dec_layers"), shape.layers),
        **dict.fromkeys(("encoder_type", "decoder_type"), "transformer" if transformer else "rnn"),
        **dict.fromkeys(("share_embeddings", "position_encoding"), transformer),
        **OPENNMT_CHOSEN,
        dropout=shape.dropout,
        attention_dropout=0.0,
        heads=shape.heads,
        transformer_ff=2 * shape.size,
    )
    words = OpenVocabulary(shape.vocabulary)
    model = borrow("onmt.model_builder").build_base_model(options, {"src": words, "tgt": words})
    for name, parameter in model.named_parameters():  # which it leaves to its trainer, and unset until then
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter)
        elif "bias" in name:
            nn.init.zeros_(parameter)
    return model


OPENNMT_OFF = (
    "freeze_word_vecs_enc",
    "freeze_word_vecs_dec",
    "copy_attn",
    "reuse_copy_attn",
    "coverage_attn",
    "aan_useffn",
    "full_context_alignment",
    "parallel_residual",
    "shared_layer_norm",
    "bridge",
)
OPENNMT_CHOSEN = {
    "model_type": "text",
    "model_task": "seq2seq",
    "optim": "adam",
    "share_decoder_embeddings": True,
    "position_encoding_type": "SinusoidalInterleaved",
    "feat_merge": "concat",
    "feat_vec_exponent": 0.7,
    "feat_vec_size": -1,
    "rnn_type": "GRU",
    "brnn": True,
    "input_feed": 1,
    "global_attention": "mlp",
    "global_attention_function": "softmax",
    "copy_attn_type": None,
    "context_gate": None,
    "self_attn_type": "scaled-dot",
    "max_relative_positions": 0,
    "relative_positions_buckets": 0,
    "alignment_layer": -3,
    "alignment_heads": 0,
    "pos_ffn_activation_fn": "relu",
    "add_qkvbias": True,
    "add_ffnbias": True,
    "num_kv": 0,
    "use_ckpting": (),
    "layer_norm": "standard",
    "norm_eps": 1e-6,
    "world_size": 1,
    "parallel_mode": "data_parallel",
    "sliding_window": 0,
    "rotary_interleave": True,
    "rotary_theta": 10000,
    "rotary_dim": 0,
    "num_experts": 0,
    "num_experts_per_tok": 2,
}


def marian(shape: Shape) -> Any:
    """transformers' Marian."""
    package: Any = importlib.import_module("transformers")
    each = {"layers": shape.layers, "attention_heads": shape.heads, "ffn_dim": 2 * shape.size}
    config = package.MarianConfig(
        vocab_size=shape.vocabulary,
        d_model=shape.size,
        activation_function="relu",
        dropout=shape.dropout,
        attention_dropout=0.0,
        scale_embedding=True,
        pad_token_id=PADDING,
        eos_token_id=END,
        decoder_start_token_id=BEGIN,
        **{f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in each.items()},
    )
    return package.MarianMTModel(config)
