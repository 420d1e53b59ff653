"""The table of names of other libraries: those that are not installed here by their published formulas, in plain torch.

Libraries that install are compared by `make agreement`, whose record is read here.
"""

import json
import math
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import Additive, Bilinear, Causal, Cosine, Dot, Gaussian, Lengths, Mask, attend, masked_softmax
from regard.layers import Attention, AttentionFlow, LocationFeatures, Memory, Projections, Trilinear, sinusoids

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / language / "how-to" / "coming-from.md" for language in ("en", "zh")]
B, H, L, S, D, E, U = 2, 3, 5, 7, 11, 13, 17
LENGTHS = torch.tensor([7, 4])
KEPT = torch.arange(S) < LENGTHS[:, None]


@pytest.fixture(autouse=True)
def double() -> object:
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def fill(parameter: Tensor | None, values: Tensor) -> None:
    assert parameter is not None
    with torch.no_grad():
        parameter.copy_(values)


def build_additive(query: Tensor, key: Tensor, weight: Tensor) -> Additive:
    """Return the score with matrices (hidden, width) and a vector."""
    score = Additive(query.shape[1], key.shape[1], query.shape[0])
    assert score.query is not None
    assert score.key is not None
    fill(score.query.weight, query)
    fill(score.key.weight, key)
    fill(score.weight, weight)
    return score


def assert_same(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)


def test_the_recorded_pairs_agree_and_are_those_of_the_script() -> None:
    record = json.loads((ROOT / "benchmarks" / "results" / "agreement.json").read_text(encoding="utf-8"))
    rows = {row["name"]: max(row["values"]) for row in record["found"]["rows"]}
    assert max(rows.values()) < 1e-5
    script = (ROOT / "benchmarks" / "agreement.py").read_text(encoding="utf-8")
    named = set(re.findall(r'@compare_as\("(.+)"\)', script))
    assert named <= set(rows)
    assert {name.split()[0] for name in rows} == {"Keras", "OpenNMT-py", "JoeyNMT", "x-transformers", "entmax"}


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh"])
def test_the_page_names_every_library(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in ("TensorFlow Addons", "AllenNLP", "OpenNMT-py", "JoeyNMT", "Keras", "ESPnet", "d2l", "x-transformers"):
        assert f"## {name}" in text
    assert "(../../../benchmarks/results/agreement.json)" in text


def test_tensorflow_addons_luong() -> None:
    """score = q · (memory W), no bias; `scale=True` multiplies by one learned g."""
    q, memory, W, g = torch.randn(B, L, U), torch.randn(B, S, E), torch.randn(E, U), torch.tensor(0.7)
    theirs = (g * q @ (memory @ W).mT).masked_fill(~KEPT[:, None], -math.inf).softmax(-1) @ memory
    score = Bilinear(U, E)
    fill(score.weight, W.T)
    assert_same(attend(g * q, memory, memory, score=score, mask=Lengths(LENGTHS)).output, theirs)


def test_tensorflow_addons_bahdanau() -> None:
    """score = v · tanh(memory W_m + q W_q); with `normalize=True`, g v / |v| and a bias inside."""
    q, memory, v = torch.randn(B, L, D), torch.randn(B, S, E), torch.randn(U)
    W_q, W_m, b, g = torch.randn(D, U), torch.randn(E, U), torch.randn(U), torch.tensor(1.3)
    plain = torch.tanh((q @ W_q)[:, :, None] + (memory @ W_m)[:, None]) @ v
    score = build_additive(W_q.T, W_m.T, v)
    assert_same(attend(q, memory, memory, score=score).output, plain.softmax(-1) @ memory)
    normalized = torch.tanh((q @ W_q)[:, :, None] + (memory @ W_m)[:, None] + b) @ (g * v / v.norm())
    special = Additive.projected(U)
    fill(special.weight, g * v / v.norm())
    found = attend(q @ W_q + b, memory @ W_m, memory, score=special)
    assert_same(found.output, normalized.softmax(-1) @ memory)


def softmax_of_allennlp(scores: Tensor, kept: Tensor) -> Tensor:
    """Softmax of what is kept times its mask, and divided by its sum again."""
    weights = torch.softmax(scores * kept, -1) * kept
    return weights / (weights.sum(-1, keepdim=True) + 1e-13)


def test_allennlp_attention() -> None:
    vector, matrix, kept = torch.randn(B, D), torch.randn(B, S, E), KEPT.clone()
    kept[1] = False  # an empty row is zeros in both
    W, b = torch.randn(D, E), torch.randn(1)
    bilinear = Bilinear(D, E)
    fill(bilinear.weight, W)
    scores = torch.einsum("bd,de,bse->bs", vector, W, matrix) + b  # softmax does not see the bias
    found = attend(vector[:, None], matrix, matrix, score=bilinear, mask=Mask.keep(kept[:, None])).weights.dense()
    torch.testing.assert_close(found[:, 0], softmax_of_allennlp(scores, kept), atol=1e-11, rtol=1e-11)
    w, u, v = torch.randn(D, E), torch.randn(E, E), torch.randn(E)
    additive = build_additive(w.T, u.T, v)
    scores = torch.tanh((vector @ w)[:, None] + matrix @ u) @ v
    found = attend(vector[:, None], matrix, matrix, score=additive, mask=Mask.keep(KEPT[:, None])).weights.dense()
    torch.testing.assert_close(found[:, 0], softmax_of_allennlp(scores, KEPT), atol=1e-11, rtol=1e-11)


def test_allennlp_dot_and_cosine() -> None:
    vector, matrix = torch.randn(B, D), torch.randn(B, S, D)
    dot = torch.einsum("bd,bsd->bs", vector, matrix)
    norms = vector.norm(dim=-1)[:, None] * matrix.norm(dim=-1)
    for score, theirs in ((Dot(), dot), ("scaled-dot", dot / math.sqrt(D)), (Cosine(), dot / norms)):
        found = attend(vector[:, None], matrix, matrix, score=score).weights.dense()[:, 0]
        assert_same(found, theirs.softmax(-1))


def test_allennlp_linear_of_x_y_and_their_product_is_the_trilinear_score() -> None:
    x, y, w = torch.randn(B, L, D), torch.randn(B, S, D), torch.randn(3 * D)
    pairs = torch.cat([x[:, :, None].expand(-1, -1, S, -1), y[:, None].expand(-1, L, -1, -1)], -1)
    theirs = torch.cat([pairs, x[:, :, None] * y[:, None]], -1) @ w
    score = Trilinear(D)
    fill(next(iter(score.parameters())), w.view(3, D))
    found = AttentionFlow(score).attend(x, y).question.weights.dense()
    assert_same(found, theirs.softmax(-1))


def test_espnet_additive_and_dot_sharpen_by_two() -> None:
    """`AttAdd` and `AttDot`: softmax(2 e); the encoder's projection has a bias; `AttDot` takes tanh of both sides."""
    h, z, v = torch.randn(B, S, E), torch.randn(B, D), torch.randn(U)
    encode, decode = nn.Linear(E, U), nn.Linear(D, U)
    theirs = (2.0 * (torch.tanh(encode(h) + decode(z)[:, None]) @ v)).softmax(-1)
    score = Additive.projected(U)
    fill(score.weight, 2.0 * v)
    assert_same(attend(decode(z)[:, None], encode(h), h, score=score).weights.dense()[:, 0], theirs)
    theirs = (2.0 * (torch.tanh(encode(h)) * torch.tanh(decode(z))[:, None]).sum(-1)).softmax(-1)
    found = attend(2.0 * torch.tanh(decode(z))[:, None], torch.tanh(encode(h)), h, score=Dot())
    assert_same(found.weights.dense()[:, 0], theirs)


def test_espnet_location() -> None:
    """`AttLoc`: a convolution of 2 f + 1 over the weights of the step before, which begin uniform there."""
    h, z, v, channels, filters = torch.randn(B, S, E), torch.randn(B, D), torch.randn(U), 3, 2
    encode, decode = nn.Linear(E, U), nn.Linear(D, U, bias=False)
    conv, att = nn.Conv2d(1, channels, (1, 2 * filters + 1), padding=(0, filters), bias=False), torch.randn(U, channels)
    before = KEPT / KEPT.sum(-1, keepdim=True)
    around = conv(before.view(B, 1, 1, S)).squeeze(2).mT @ att.T
    energy = (torch.tanh(encode(h) + around + decode(z)[:, None]) @ v).masked_fill(~KEPT, -math.inf)
    features = LocationFeatures(U, channels=channels, width=2 * filters + 1)
    fill(features.filters.weight, conv.weight[:, :, 0])
    fill(features.features.weight, att)
    memory = features(Memory(encode(h), h, Lengths(LENGTHS)), before)
    score = Additive.projected(U)
    fill(score.weight, 2.0 * v)
    found = attend(decode(z)[:, None], memory.key, memory.value, score=score, mask=Lengths(LENGTHS))
    assert_same(found.weights.dense()[:, 0], (2.0 * energy).softmax(-1))


def test_d2l() -> None:
    """§11: `masked_softmax` by −10⁶, additive and scaled dot product, heads without biases, positions, regression."""
    q, k, v = torch.randn(B, L, D), torch.randn(B, S, D), torch.randn(B, S, E)
    scores = q @ k.mT / math.sqrt(D)
    masked = torch.where(KEPT[:, None], scores, -1e6).softmax(-1)
    assert_same(attend(q, k, v, mask=Lengths(LENGTHS)).output, masked @ v)
    assert_same(masked_softmax(scores, LENGTHS), masked)
    x, keys, y = torch.rand(L, 1), torch.rand(S, 1), torch.randn(S, 1)
    assert_same(attend(x, keys, y, score=Gaussian()).output, (-((x - keys.T) ** 2) / 2).softmax(-1) @ y)
    i, j = torch.arange(9.0)[:, None], torch.arange(0, 6, 2.0)
    P = torch.zeros(9, 6)
    P[:, 0::2], P[:, 1::2] = torch.sin(i / 10000 ** (j / 6)), torch.cos(i / 10000 ** (j / 6))
    torch.testing.assert_close(sinusoids(9, 6).double(), P, atol=1e-6, rtol=0)


def test_d2l_heads() -> None:
    """Four matrices without biases, heads side by side."""
    x, size = torch.randn(B, S, 12), 12
    W = [nn.Linear(size, size, bias=False) for _ in range(4)]
    q, k, v = (each(x).view(B, S, H, -1).transpose(1, 2) for each in W[:3])
    weights = torch.where(KEPT[:, None, None], q @ k.mT / 2.0, -1e6).softmax(-1)
    theirs = W[3]((weights @ v).transpose(1, 2).reshape(B, S, size))
    assert_same(Attention(Projections(*W, heads=H))(x, mask=Lengths(LENGTHS)), theirs)


def test_torch_aligns_the_first_query_with_the_first_key() -> None:
    q, k, v = torch.randn(B, H, L, D), torch.randn(B, H, S, D), torch.randn(B, H, S, E)
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert_same(attend(q, k, v, mask=Causal.from_first()).output, theirs)
    assert not torch.allclose(attend(q, k, v, mask=Causal()).output, theirs)
