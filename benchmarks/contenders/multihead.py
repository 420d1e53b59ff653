"""Multi-head attention of a sequence with itself: our layer, torch's, and those of three libraries.

All have the same four matrices and no bias other than zeros. Functions with `weights` in their name also return the
weights of each head, those with `summary` the entropy and the five largest weights of each query.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.claim import Contender
from benchmarks.contenders.tensors import collect_leaves, draw_normal
from regard.layers import Attention


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """batch × length × size, with heads."""

    batch: int
    length: int
    size: int
    heads: int


def build_torch_module(sizes: LayerSizes) -> nn.MultiheadAttention:
    """torch's own module; the parameters of all others come from it."""
    module = nn.MultiheadAttention(sizes.size, sizes.heads, batch_first=True)
    scale = sizes.size**-0.5
    with torch.no_grad():
        module.in_proj_weight.copy_(draw_normal(3 * sizes.size, sizes.size, seed=1) * scale)
        module.out_proj.weight.copy_(draw_normal(sizes.size, sizes.size, seed=2) * scale)
    return module


def draw_sequence(sizes: LayerSizes) -> Tensor:
    """Draw the sequence that attends to itself."""
    return draw_normal(sizes.batch, sizes.length, sizes.size, seed=3)


def ours(sizes: LayerSizes) -> Contender:
    """Our layer."""
    layer, x = Attention.from_torch(build_torch_module(sizes)), draw_sequence(sizes)
    return Contender(lambda: layer.attend_self(x)[0].output, collect_leaves(x, layer))


def ours_summary(sizes: LayerSizes) -> Contender:
    """Our layer, its weights summarized without leaving its fused call."""
    layer, x = Attention.from_torch(build_torch_module(sizes)), draw_sequence(sizes)

    def forward() -> Tensor:
        attended, _ = layer.attend_self(x)
        attended.weights.summary(5)
        return attended.output

    return Contender(forward, collect_leaves(x, layer))


def ours_dense(sizes: LayerSizes) -> Contender:
    """Our layer, and the table of its weights."""
    layer, x = Attention.from_torch(build_torch_module(sizes)), draw_sequence(sizes)

    def forward() -> Tensor:
        attended, _ = layer.attend_self(x)
        with torch.no_grad():
            attended.weights.dense()
        return attended.output

    return Contender(forward, collect_leaves(x, layer))


def torch_plain(sizes: LayerSizes) -> Contender:
    """`nn.MultiheadAttention(need_weights=False)`."""
    return _build_plain(
        build_torch_module(sizes), draw_sequence(sizes), lambda module, x: module(x, x, x, need_weights=False)[0]
    )


def torch_weights(sizes: LayerSizes) -> Contender:
    """`nn.MultiheadAttention` with the weights of each head."""
    return _build_plain(
        build_torch_module(sizes), draw_sequence(sizes), lambda module, x: _call_with_weights(module, x)[0]
    )


def torch_summary(sizes: LayerSizes) -> Contender:
    """The same, and entropy and largest weights computed from them."""
    return _build_summary(build_torch_module(sizes), draw_sequence(sizes), _call_with_weights)


def _call_with_weights(module: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    output, weights = module(x, x, x, need_weights=True, average_attn_weights=False)
    return output, weights


def keras(sizes: LayerSizes) -> Contender:
    """Keras 3 on torch, `MultiHeadAttention`."""
    layer, x = build_keras_layer(sizes), draw_sequence(sizes)
    return Contender(lambda: layer(x, x), collect_leaves(x, layer))


def keras_weights(sizes: LayerSizes) -> Contender:
    """The same with `return_attention_scores=True`."""
    layer, x = build_keras_layer(sizes), draw_sequence(sizes)
    return Contender(lambda: layer(x, x, return_attention_scores=True)[0], collect_leaves(x, layer))


def build_keras_layer(sizes: LayerSizes) -> Any:
    """Return the layer with the stock module's matrices."""
    width = sizes.size // sizes.heads
    layer = importlib.import_module("keras").layers.MultiHeadAttention(sizes.heads, width)
    x = draw_sequence(sizes)
    layer(x, x)  # makes its variables
    module = build_torch_module(sizes)
    for part, matrix in zip(layer.weights[:6:2], module.in_proj_weight.detach().chunk(3), strict=True):
        part.assign(matrix.T.reshape(sizes.size, sizes.heads, width))
    layer.weights[6].assign(module.out_proj.weight.detach().T.reshape(sizes.heads, width, sizes.size))
    return layer


def x_transformers(sizes: LayerSizes) -> Contender:
    """x-transformers' `Attention`, fused."""
    return _build_plain(build_x_module(sizes, flash=True), draw_sequence(sizes), lambda module, x: module(x))


def x_transformers_weights(sizes: LayerSizes) -> Contender:
    """The same with what it calls intermediates: the weights among them."""
    module = build_x_module(sizes, flash=False)
    return _build_plain(module, draw_sequence(sizes), lambda module, x: module(x, return_intermediates=True)[0])


def build_x_module(sizes: LayerSizes, *, flash: bool) -> Any:
    """Return the module with the stock module's matrices."""
    attention = importlib.import_module("x_transformers.x_transformers").Attention
    module = attention(sizes.size, heads=sizes.heads, dim_head=sizes.size // sizes.heads, flash=flash)
    given = build_torch_module(sizes)
    with torch.no_grad():
        for part, matrix in zip((module.to_q, module.to_k, module.to_v), given.in_proj_weight.chunk(3), strict=True):
            part.weight.copy_(matrix)
        module.to_out.weight.copy_(given.out_proj.weight)
    return module


def transformers(sizes: LayerSizes) -> Contender:
    """transformers' attention (that of Bart) by SDPA."""
    return _build_plain(build_bart_module(sizes, "sdpa"), draw_sequence(sizes), lambda module, x: module(x)[0])


def transformers_weights(sizes: LayerSizes) -> Contender:
    """The same in the eager implementation, the one that gives weights."""
    return _build_plain(
        build_bart_module(sizes, "eager"), draw_sequence(sizes), lambda module, x: module(x, output_attentions=True)[0]
    )


def build_bart_module(sizes: LayerSizes, implementation: str) -> Any:
    """Return the module with the stock module's matrices."""
    bart = importlib.import_module("transformers.models.bart.modeling_bart")
    config = bart.BartConfig(d_model=sizes.size, attn_implementation=implementation)
    module = bart.BartAttention(sizes.size, sizes.heads, config=config)
    given = build_torch_module(sizes)
    with torch.no_grad():
        parts = (module.q_proj, module.k_proj, module.v_proj)
        for part, matrix in zip(parts, given.in_proj_weight.chunk(3), strict=True):
            part.weight.copy_(matrix)
            part.bias.zero_()
        module.out_proj.weight.copy_(given.out_proj.weight)
        module.out_proj.bias.zero_()
    return module


def _build_plain(module: nn.Module, x: Tensor, call: Callable[[Any, Tensor], Tensor]) -> Contender:
    return Contender(lambda: call(module, x), collect_leaves(x, module))


def _build_summary(module: nn.Module, x: Tensor, call: Callable[[Any, Tensor], tuple[Tensor, Tensor]]) -> Contender:
    def forward() -> Tensor:
        output, weights = call(module, x)
        with torch.no_grad():
            torch.special.entr(weights).sum(-1)
            weights.topk(5, dim=-1)
        return output

    return Contender(forward, collect_leaves(x, module))
