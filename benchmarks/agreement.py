"""Compare our parts with those of libraries by their numbers: `make agreement`, in the environment of the peers.

Each pair below computes the same thing twice, in float64, with the conventions of docs/en/how-to/coming-from.md. How
far both differ is kept in benchmarks/results/agreement.json, which the site shows and a test reads.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from datetime import date
from functools import partial
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

import regard
from benchmarks.contenders.peer_modules import borrow
from benchmarks.results import FOLDER
from regard.cli.machine import describe_machine
from regard.layers import Attention, Projections, Rotary

BATCH, HEADS, QUERIES, KEYS, SIZE = 2, 4, 5, 7, 24
LENGTHS = torch.tensor([7, 4])
KEPT = torch.arange(KEYS) < LENGTHS[:, None]
SEEDS = range(3)
FAR = 1e-5  # some libraries compute a part in float32
LIBRARIES = ("keras", "OpenNMT-py", "joeynmt", "x-transformers", "entmax")

Pair = tuple[Tensor, Tensor]
PAIRS: dict[str, Callable[[], Pair]] = {}


def compare_as(name: str) -> Callable[[Callable[[], Pair]], Callable[[], Pair]]:
    """Register a function that returns what they compute, and what we do."""

    def register(function: Callable[[], Pair]) -> Callable[[], Pair]:
        PAIRS[name] = function
        return function

    return register


def draw_inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Return a query, a key and a value of one width, batch first."""
    return torch.randn(BATCH, QUERIES, SIZE), torch.randn(BATCH, KEYS, SIZE), torch.randn(BATCH, KEYS, SIZE)


def fill(parameter: Any, values: Tensor) -> None:
    """Copy values into a parameter of torch."""
    with torch.no_grad():
        parameter.copy_(values)


def build_keras(name: str, **options: Any) -> Any:
    """Return a layer of Keras in float64."""
    return getattr(importlib.import_module("keras").layers, name)(dtype="float64", **options)


@compare_as("Keras Attention()")
def keras_attention() -> Pair:
    """Luong's dot product, without a scale; true in its mask means that a key may be seen, as here."""
    q, k, v = draw_inputs()
    theirs = build_keras("Attention")([q, v, k], mask=[None, KEPT])
    return theirs, regard.attend(q, k, v, score=regard.Dot(), mask=regard.Lengths(LENGTHS)).output


@compare_as("Keras Attention(use_scale=True)")
def keras_scaled_attention() -> Pair:
    """The scale is one learned number that begins at 1, not one over the root of the width."""
    q, k, v = draw_inputs()
    layer = build_keras("Attention", use_scale=True)
    layer([q, v, k])
    layer.scale.assign(0.3)
    return layer([q, v, k]), regard.attend(0.3 * q, k, v, score=regard.Dot()).output


@compare_as("Keras Attention, use_causal_mask=True")
def keras_causal_attention() -> Pair:
    """The first query sees the first key, whatever the number of keys."""
    q, k, v = draw_inputs()
    theirs = build_keras("Attention")([q, v, k], use_causal_mask=True)
    return theirs, regard.attend(q, k, v, score=regard.Dot(), mask=regard.Causal.from_first()).output


@compare_as("Keras AdditiveAttention()")
def keras_additive() -> Pair:
    """A weight, and no projections."""
    q, k, v = draw_inputs()
    layer, score = build_keras("AdditiveAttention"), regard.Additive.projected(SIZE)
    layer([q, v, k])
    fill(score.weight, torch.as_tensor(layer.scale.numpy()))
    return layer([q, v, k]), regard.attend(q, k, v, score=score).output


@compare_as("Keras MultiHeadAttention(heads, width)")
def keras_heads() -> Pair:
    """Matrices with an axis of heads; biases; true in `attention_mask` means that a key may be seen."""
    q, k, v = draw_inputs()
    layer = build_keras("MultiHeadAttention", num_heads=HEADS, key_dim=SIZE // HEADS, bias_initializer="uniform")
    keep = KEPT[:, None].expand(-1, QUERIES, -1)
    theirs = layer(q, v, key=k, attention_mask=keep)
    weights = [torch.as_tensor(part.numpy()) for part in layer.weights]
    linears = [build_linear(weights[at].reshape(SIZE, SIZE).T, weights[at + 1].flatten()) for at in (0, 2, 4, 6)]
    ours = Attention(Projections(*linears, heads=HEADS))
    return theirs, ours(q, k, v, mask=regard.Lengths(LENGTHS))


def build_linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """Return a linear layer with these numbers."""
    made = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    fill(made.weight, weight)
    if bias is not None:
        fill(made.bias, bias)
    return made


def compare_opennmt(kind: str, function: str = "softmax") -> Pair:
    """The weights of `GlobalAttention`; its mask is made of lengths, and its output is Luong's attention vector."""
    q, k, _ = draw_inputs()
    module = borrow("onmt.modules.global_attention").GlobalAttention(SIZE, attn_type=kind, attn_func=function)
    score: Any = regard.Dot()
    if kind == "general":
        score = regard.Bilinear(SIZE)
        fill(score.weight, module.linear_in.weight.T)
    if kind == "mlp":
        score = regard.Additive.projected(SIZE)
        fill(score.weight, module.v.weight[0])
        near, far = module.linear_query(q), module.linear_context(k)
    else:
        near, far = q, k
    ours = regard.attend(near, far, k, score=score, mask=regard.Lengths(LENGTHS), normalizer=function)
    return module(q, k, LENGTHS)[1], ours.weights.dense()


for name, arguments in {
    "dot": ("dot",),  # not scaled
    "general": ("general",),  # the matrix is applied to the query: its transpose is ours
    "mlp": ("mlp",),  # the projection of the query has a bias
    "dot, sparsemax": ("dot", "sparsemax"),
}.items():
    PAIRS[f"OpenNMT-py GlobalAttention, {name}"] = partial(compare_opennmt, *arguments)


@compare_as("JoeyNMT BahdanauAttention")
def joeynmt_bahdanau() -> Pair:
    """One query at a time; true in its mask means that a key may be seen; no biases."""
    q, k, _ = draw_inputs()
    module = borrow("joeynmt.attention").BahdanauAttention(SIZE, SIZE, SIZE)
    score: Any = regard.Additive(SIZE)
    for ours, theirs in ((score.query, module.query_layer), (score.key, module.key_layer)):
        fill(ours.weight, theirs.weight)
    fill(score.weight, module.energy_layer.weight[0])
    module.compute_proj_keys(k)
    theirs = torch.cat([module(one, KEPT[:, None], k)[0] for one in q.split(1, 1)], 1)
    return theirs, regard.attend(q, k, k, score=score, mask=regard.Lengths(LENGTHS)).output


@compare_as("JoeyNMT LuongAttention")
def joeynmt_luong() -> Pair:
    """The matrix is applied to the keys."""
    q, k, _ = draw_inputs()
    module, score = borrow("joeynmt.attention").LuongAttention(SIZE, SIZE), regard.Bilinear(SIZE)
    fill(score.weight, module.key_layer.weight)
    module.compute_proj_keys(k)
    theirs = torch.cat([module(one, KEPT[:, None], k)[0] for one in q.split(1, 1)], 1)
    return theirs, regard.attend(q, k, k, score=score, mask=regard.Lengths(LENGTHS)).output


@compare_as("JoeyNMT MultiHeadedAttention")
def joeynmt_heads() -> Pair:
    """Key, value and query in this order; dropout of weights is 0.1 unless another is named."""
    q, k, v = draw_inputs()
    module = borrow("joeynmt.transformer_layers").MultiHeadedAttention(HEADS, SIZE).eval()
    parts = (module.q_layer, module.k_layer, module.v_layer, module.output_layer)
    ours = Attention(Projections(*parts, heads=HEADS))
    return module(k, v, q, mask=KEPT[:, None])[0], ours(q, k, v, mask=regard.Lengths(LENGTHS))


def compare_x_transformers(options: dict[str, Any], parts: dict[str, Any], **call: Any) -> Pair:
    """Self-attention of x-transformers, which has no biases, and ours with the same matrices."""
    x = torch.randn(BATCH, KEYS, SIZE)
    attention = importlib.import_module("x_transformers.x_transformers").Attention
    module = attention(SIZE, heads=HEADS, dim_head=SIZE // HEADS, **options)
    linears = (module.to_q, module.to_k, module.to_v, module.to_out)
    ours = Attention(Projections(*linears, heads=HEADS), **parts)
    mask = regard.Causal() if options.get("causal") else regard.Full()
    return module(x, **call), ours(x, mask=mask)


@compare_as("x-transformers Attention(causal=True)")
def x_causal() -> Pair:
    """Scaled dot product; the last query sees the last key, as here."""
    return compare_x_transformers({"causal": True}, {})


@compare_as("x-transformers Attention(kv_heads=2)")
def x_groups() -> Pair:
    """Heads h and h + 2 share their keys there, heads 2g and 2g + 1 here: the queries and the output change places."""
    x = torch.randn(BATCH, KEYS, SIZE)
    attention = importlib.import_module("x_transformers.x_transformers").Attention
    module = attention(SIZE, heads=HEADS, dim_head=SIZE // HEADS, kv_heads=2)
    order = torch.arange(SIZE).view(HEADS, -1)[torch.arange(HEADS).view(-1, 2).T.flatten()].flatten()
    query, output = build_linear(module.to_q.weight[order]), build_linear(module.to_out.weight[:, order])
    ours = Attention(Projections(query, module.to_k, module.to_v, output, heads=HEADS, groups=2))
    return module(x), ours(x)


@compare_as("x-transformers AlibiPositionalBias(heads)")
def x_alibi() -> Pair:
    """Distances to both sides, though ALiBi is meant for keys of the past."""
    bias = importlib.import_module("x_transformers.x_transformers").AlibiPositionalBias(HEADS)
    q, k, v = torch.randn(3, BATCH, HEADS, KEYS, SIZE)
    theirs = ((q @ k.mT) * SIZE**-0.5 + bias(KEYS, KEYS)).softmax(-1) @ v
    return theirs, regard.attend(q, k, v, bias=regard.ALiBi(HEADS)).output


@compare_as("x-transformers Attention(qk_norm=True)")
def x_cosine() -> Pair:
    """Queries and keys of length one, times `qk_norm_scale` = 10: a cosine of temperature 0.1."""
    return compare_x_transformers({"qk_norm": True}, {"score": regard.Cosine(temperature=0.1)})


@compare_as("x-transformers RotaryEmbedding(width)")
def x_rotary() -> Pair:
    """Neighbors are pairs, the layout of the paper; halves are another."""
    width = SIZE // HEADS
    rotary = importlib.import_module("x_transformers.x_transformers").RotaryEmbedding(width)
    positions = rotary.forward_from_seq_len(KEYS)
    return compare_x_transformers({}, {"rotary": Rotary(width)}, rotary_pos_emb=positions)


def compare_entmax(function: str, normalizer: Any, **options: Any) -> Pair:
    """Their function of a table of scores, and our weights from the same table."""
    q, k, v = draw_inputs()
    theirs = getattr(importlib.import_module("entmax"), function)(q @ k.mT, dim=-1, **options)
    return theirs, regard.attend(q, k, v, score=regard.Dot(), normalizer=normalizer).weights.dense()


@compare_as("entmax sparsemax")
def entmax_sparsemax() -> Pair:
    """No mask: hide a score by minus infinity there."""
    return compare_entmax("sparsemax", regard.Sparsemax())


@compare_as("entmax entmax15")
def entmax_15() -> Pair:
    """The exact algorithm of both."""
    return compare_entmax("entmax15", regard.Entmax15())


@compare_as("entmax entmax_bisect(alpha=1.3)")
def entmax_bisect() -> Pair:
    """50 bisections there."""
    return compare_entmax("entmax_bisect", regard.Entmax(1.3), alpha=1.3)


def measure(function: Callable[[], Pair], seed: int) -> float:
    """Return the largest difference of a pair, relative to our largest number."""
    torch.manual_seed(seed)
    theirs, ours = function()
    if theirs.shape != ours.shape:
        raise ValueError(f"shapes: got {tuple(theirs.shape)}, expected {tuple(ours.shape)}")
    return float((theirs - ours).abs().max() / ours.abs().max())


def main() -> int:
    """Compare all pairs, keep what was found, and return 1 if some differ."""
    os.environ["KERAS_BACKEND"] = "torch"
    torch.set_default_dtype(torch.float64)
    with torch.no_grad():
        found = {name: [measure(pair, seed) for seed in SEEDS] for name, pair in PAIRS.items()}
    far = [name for name, values in found.items() if max(values) > FAR]
    title = "the same inputs and parameters: largest difference, relative"
    result = {
        "name": "agreement",
        "machine": describe_machine()._asdict(),
        "date": date.today().isoformat(),
        "versions": {name: version(name) for name in LIBRARIES},
        "found": {"title": title, "rows": [{"name": name, "values": values} for name, values in found.items()]},
    }
    (FOLDER / "agreement.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for name, values in found.items():
        print(f"{name:45} {max(values):.1e}")
    print(f"differ: {', '.join(far)}" if far else f"all {len(found)} agree", file=sys.stderr if far else sys.stdout)
    return 1 if far else 0


if __name__ == "__main__":
    raise SystemExit(main())
