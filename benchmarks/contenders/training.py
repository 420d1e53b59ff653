"""One training step of a small Transformer for translation: forward and backward on the same padded sentences.

All have the sizes of `transformer-tiny`, one table for the words of both sides and the output, the same rate of dropout
and label smoothing. Weights differ, and so do losses: what is alike is the work, the same tokens read and said.
"""

import importlib
import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.claim import Contender
from regard.models import PRESETS, build

PADDING, SMOOTHING, DROPOUT = 0, 0.1, 0.3


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sentences of at most `longest` tokens, from a vocabulary; width of the stream, and layers of each stack."""

    sentences: int
    longest: int
    vocabulary: int
    size: int = 128
    layers: int = 4
    heads: int = 4


class Text:
    """Sources of half of the longest length at least, and targets, which have one token more to begin with."""

    def __init__(self, sizes: Sizes) -> None:
        draw = torch.Generator().manual_seed(1)
        shape = sizes.sentences, sizes.longest + 1
        self.lengths = torch.randint(sizes.longest // 2, sizes.longest + 1, (sizes.sentences,), generator=draw)
        real = torch.arange(sizes.longest + 1) <= self.lengths[:, None]
        self.target = torch.randint(4, sizes.vocabulary, shape, generator=draw).where(real, PADDING)
        self.source = torch.randint(4, sizes.vocabulary, shape, generator=draw).where(real, PADDING)[:, 1:]

    @property
    def tokens(self) -> int:
        """Target tokens that are to be said."""
        return int(self.lengths.sum())


def ours(sizes: Sizes) -> Contender:
    """Our model and its loss."""
    text, preset = Text(sizes), PRESETS["transformer-tiny"]
    shape = replace(preset.transformer, layers=sizes.layers, decoder_layers=sizes.layers, heads=sizes.heads)
    config = replace(preset, size=sizes.size, dropout=DROPOUT, transformer=replace(shape, hidden=2 * sizes.size))
    model = build(config, source=sizes.vocabulary, target=sizes.vocabulary).train()

    def forward() -> Tensor:
        losses = model.loss(text.source, text.lengths, text.target, text.lengths + 1, smoothing=SMOOTHING)
        return losses.total / losses.tokens

    return Contender(forward, tuple(model.parameters()))


class Plain(nn.Module):
    """What a tutorial writes around `nn.Transformer`."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.table = nn.Embedding(sizes.vocabulary, sizes.size)
        self.positions = nn.Parameter(torch.zeros(sizes.longest, sizes.size), requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(sizes.vocabulary))
        stacks = {"num_encoder_layers": sizes.layers, "num_decoder_layers": sizes.layers}
        width = {"dim_feedforward": 2 * sizes.size, "dropout": DROPOUT}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that norms first exclude nested tensors
            self.stack = nn.Transformer(sizes.size, sizes.heads, **stacks, **width, batch_first=True, norm_first=True)  # type: ignore[arg-type]

    def forward(self, source: Tensor, said: Tensor) -> Tensor:
        later = torch.triu(torch.ones(said.shape[1], said.shape[1], dtype=torch.bool), 1)
        streams = [
            F.dropout(self.table(side) * self.table.embedding_dim**0.5 + self.positions, DROPOUT)
            for side in (source, said)
        ]
        hidden = source == PADDING
        made = self.stack(
            *streams, tgt_mask=later, src_key_padding_mask=hidden, memory_key_padding_mask=hidden, tgt_is_causal=True
        )
        return F.linear(made, self.table.weight, self.bias)


def plain(sizes: Sizes) -> Contender:
    """A plain loop around `nn.Transformer`."""
    text, model = Text(sizes), Plain(sizes).train()
    leaves = tuple(parameter for parameter in model.parameters() if parameter.requires_grad)
    return Contender(lambda: judged(model(text.source, text.target[:, :-1]), text), leaves)


def marian(sizes: Sizes) -> Contender:
    """transformers' Marian."""
    package: Any = importlib.import_module("transformers")
    text = Text(sizes)
    each = {"layers": sizes.layers, "attention_heads": sizes.heads, "ffn_dim": 2 * sizes.size}
    config = package.MarianConfig(
        vocab_size=sizes.vocabulary,
        d_model=sizes.size,
        activation_function="relu",
        dropout=DROPOUT,
        attention_dropout=0.0,
        scale_embedding=True,
        pad_token_id=PADDING,
        eos_token_id=3,
        decoder_start_token_id=2,
        **{f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in each.items()},
    )
    model = package.MarianMTModel(config).train()
    mask = (text.source != PADDING).long()
    leaves = tuple(parameter for parameter in model.parameters() if parameter.requires_grad)

    def forward() -> Tensor:
        said = text.target[:, :-1]
        return judged(model(text.source, mask, decoder_input_ids=said, use_cache=False).logits, text)

    return Contender(forward, leaves)


def judged(logits: Tensor, text: Text) -> Tensor:
    """The loss of a tutorial: scores of padding too, which are then ignored."""
    wanted = text.target[:, 1:]
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PADDING, label_smoothing=SMOOTHING)
