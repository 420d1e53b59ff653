"""Additive attention: ours, the textbook's, and that of three libraries.

All compute softmax(v·tanh(W q + U s)) s for the same queries q, source s and matrices, gradients for all of them.
"""

import importlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import regard
from benchmarks.claim import Contender
from benchmarks.contenders.peer_modules import borrow
from benchmarks.contenders.tensors import collect_leaves, draw_linear, draw_normal


@dataclass(frozen=True, slots=True)
class AdditiveSizes:
    """batch × queries × keys, and the width of everything."""

    batch: int
    queries: int
    keys: int
    hidden: int


class AdditiveInputs:
    """What the contenders are given."""

    def __init__(self, sizes: AdditiveSizes) -> None:
        self.query = draw_normal(sizes.batch, sizes.queries, sizes.hidden, seed=1)
        self.source = draw_normal(sizes.batch, sizes.keys, sizes.hidden, seed=2)
        self.near = draw_linear(sizes.hidden, sizes.hidden, seed=3)
        self.far = draw_linear(sizes.hidden, sizes.hidden, seed=4)
        self.weight = draw_normal(sizes.hidden, seed=5)
        self.lengths = torch.randint(1, sizes.keys + 1, (sizes.batch,), generator=torch.Generator().manual_seed(6))


def ours(sizes: AdditiveSizes) -> Contender:
    """The operator, with the projections of the score."""
    given = AdditiveInputs(sizes)
    score = regard.Additive(sizes.hidden)
    if score.query is None or score.key is None:
        raise TypeError("the score was built with widths and has no projections")
    with torch.no_grad():
        score.weight.copy_(given.weight)
        score.query.weight.copy_(given.near.weight)
        score.key.weight.copy_(given.far.weight)

    def forward() -> Tensor:
        return regard.attend(given.query, given.source, given.source, score=score).output

    return Contender(forward, collect_leaves(given.query, given.source, score))


class TextbookAttention(nn.Module):
    """Bahdanau's attention as textbooks write it (d2l, §11.3): every sum of a query and a key, then tanh."""

    def __init__(self, given: AdditiveInputs) -> None:
        super().__init__()
        self.near, self.far = given.near, given.far
        self.weight = nn.Linear(given.weight.numel(), 1, bias=False)
        with torch.no_grad():
            self.weight.weight.copy_(given.weight[None])

    def forward(self, query: Tensor, source: Tensor, lengths: Tensor | None) -> Tensor:
        hidden = torch.tanh(self.near(query).unsqueeze(2) + self.far(source).unsqueeze(1))
        return masked_softmax(self.weight(hidden).squeeze(-1), lengths) @ source


def masked_softmax(scores: Tensor, lengths: Tensor | None) -> Tensor:
    """Softmax over the first `lengths` keys of each sample, by a large negative score for the others."""
    if lengths is not None:
        beyond = torch.arange(scores.shape[-1])[None, None, :] >= lengths[:, None, None]
        scores = scores.masked_fill(beyond, -1e6)
    return torch.softmax(scores, dim=-1)


def textbook(sizes: AdditiveSizes) -> Contender:
    """Plain torch, from the definition."""
    given = AdditiveInputs(sizes)
    module = TextbookAttention(given)
    return Contender(lambda: module(given.query, given.source, None), collect_leaves(given.query, given.source, module))


def keras(sizes: AdditiveSizes) -> Contender:
    """Keras 3 on torch. Its layer has no projections, so torch's own are put before it."""
    given = AdditiveInputs(sizes)
    layer = build_keras_layer(given)
    near, far = given.near, given.far

    def forward() -> Tensor:
        attended: Tensor = layer([near(given.query), given.source, far(given.source)])
        return attended

    return Contender(forward, (given.query, given.source, near.weight, far.weight, layer.scale.value))


def build_keras_layer(given: AdditiveInputs) -> Any:
    """Return the layer, with our weight."""
    layer = importlib.import_module("keras").layers.AdditiveAttention()
    layer([given.query, given.source, given.source])  # makes its variables
    layer.scale.assign(given.weight.detach())
    return layer


def opennmt(sizes: AdditiveSizes) -> Contender:
    """OpenNMT-py's `GlobalAttention`, type mlp."""
    given = AdditiveInputs(sizes)
    module = build_opennmt_module(given)
    return Contender(lambda: module(given.query, given.source)[0], collect_leaves(given.query, given.source, module))


def build_opennmt_module(given: AdditiveInputs) -> Any:
    """The module with our parameters. Its last projection is set to give the context back, which it computes anyway."""
    size = given.weight.numel()
    module = borrow("onmt.modules.global_attention").GlobalAttention(size, attn_type="mlp")
    with torch.no_grad():
        module.linear_query.weight.copy_(given.near.weight)
        module.linear_query.bias.zero_()
        module.linear_context.weight.copy_(given.far.weight)
        module.v.weight.copy_(given.weight[None])
        module.linear_out.weight.copy_(torch.eye(size, 2 * size))
        module.linear_out.bias.zero_()
    return module


def joeynmt(sizes: AdditiveSizes) -> Contender:
    """JoeyNMT's `BahdanauAttention`, which reads for one query at a time, with the keys projected once."""
    given = AdditiveInputs(sizes)
    module = build_joeynmt_module(given)
    mask = torch.ones(sizes.batch, 1, sizes.keys, dtype=torch.bool)

    def forward() -> Tensor:
        module.compute_proj_keys(given.source)
        return torch.cat([module(query, mask, given.source)[0] for query in given.query.split(1, dim=1)], dim=1)

    return Contender(forward, collect_leaves(given.query, given.source, module))


def build_joeynmt_module(given: AdditiveInputs) -> Any:
    """Return the module with our parameters."""
    size = given.weight.numel()
    module = borrow("joeynmt.attention").BahdanauAttention(size, size, size)
    with torch.no_grad():
        module.query_layer.weight.copy_(given.near.weight)
        module.key_layer.weight.copy_(given.far.weight)
        module.energy_layer.weight.copy_(given.weight[None])
    return module


def without_scores(sizes: AdditiveSizes) -> Contender:
    """What every contender does beside the scores, in bare torch: two projections, a softmax, a product."""
    given = AdditiveInputs(sizes)
    scores = draw_normal(sizes.batch, sizes.queries, sizes.keys, seed=7)

    def forward() -> Tensor:
        projected = given.near(given.query), given.far(given.source)
        touched = projected[0][..., :1] + projected[1][..., :1].transpose(1, 2)  # so that their gradients flow
        return torch.softmax(scores + touched, dim=-1) @ given.source

    return Contender(forward, collect_leaves(given.query, given.source, given.near, given.far))


def tanh_alone(sizes: AdditiveSizes) -> Contender:
    """The tanh of every sum and nothing else, a query of all samples at a time, so that it stays in the cache."""
    given = AdditiveInputs(sizes)

    def forward() -> Tensor:
        made = given.source
        for query in given.query.split(1, dim=1):
            made = torch.tanh(query + given.source)
        return made

    return Contender(forward, (given.query, given.source))


AROUND = "all of it but the scores, in bare torch"
LIMIT = (
    "projections, softmax and the product with the values, which every contender pays, and in the kernel the additions,"
    " multiplications and divisions themselves: about five vector operations for each pair of hidden units."
)
PEERS = {"textbook": textbook, "Keras": keras, "OpenNMT-py": opennmt, "JoeyNMT": joeynmt}
