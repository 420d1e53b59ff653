"""torch's own modules, in every mode they have."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.inspect.observe.checking import close, observe_unchanged

B, H, L, S, E = 3, 4, 5, 7, 12


def weigh_by_definition(module: nn.MultiheadAttention, query: Tensor, key: Tensor, **masks: Any) -> Tensor:
    """Return the weights of each head by torch's slow path without dropout: (batch, heads, queries, keys)."""
    slow = module.__class__.forward
    training = module.training
    with torch.no_grad(), take_slow_path():
        weights = slow(module.eval(), query, key, key, average_attn_weights=False, **masks)[1]
    module.train(training)
    return weights


@contextmanager
def take_slow_path() -> Iterator[None]:
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(True)


MODES = {
    "plain": ({}, {}),
    "bias_kv": ({"add_bias_kv": True}, {}),
    "zero": ({"add_zero_attn": True}, {}),
    "no bias": ({"bias": False}, {}),
    "causal": ({}, {"attn_mask": torch.ones(L, S).triu(2).bool()}),
    "float mask": ({}, {"attn_mask": torch.linspace(-1, 1, L * S).view(L, S)}),
    "mask of heads": ({}, {"attn_mask": torch.linspace(-1, 1, B * H * L * S).view(B * H, L, S)}),
    "padded": ({}, {"key_padding_mask": torch.arange(S) >= torch.tensor([[S], [3], [2]])}),
}


@pytest.mark.parametrize("weights", ["none", "mean", "heads"])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("mode", MODES)
def test_multihead_attention_in_all_modes(mode: str, training: bool, weights: str) -> None:
    options, masks = MODES[mode]
    module = nn.MultiheadAttention(E, H, dropout=0.3, batch_first=True, **options).train(training)
    query, key = torch.randn(B, L, E), torch.randn(B, S, E)
    asked = {"need_weights": weights != "none", "average_attn_weights": weights == "mean"}
    for item in range(B):
        recording = observe_unchanged(module, lambda: module(query, key, key, **asked, **masks), item=item)
        assert list(recording) == ["MultiheadAttention"]
        close(recording["MultiheadAttention"].dense(), weigh_by_definition(module, query, key, **masks)[item])


@pytest.mark.parametrize("layout", ["unbatched", "batch second", "other widths"])
@pytest.mark.parametrize("need", [True, False], ids=["weights", "fused"])
def test_multihead_attention_in_other_layouts(layout: str, need: bool) -> None:
    widths = {"kdim": 10, "vdim": 10} if layout == "other widths" else {}
    module = nn.MultiheadAttention(E, H, batch_first=layout == "other widths", **widths)
    query = torch.randn(L, E) if layout == "unbatched" else torch.randn(L, B, E)
    key = torch.randn(S, E) if layout == "unbatched" else torch.randn(S, B, E)
    if widths:
        query, key = torch.randn(B, L, E), torch.randn(B, S, 10)
    recording = observe_unchanged(module, lambda: module(query, key, key, need_weights=need))
    expected = weigh_by_definition(module, query, key)
    close(recording["MultiheadAttention"].dense(), expected if layout == "unbatched" else expected[0])


@pytest.mark.parametrize("need", [True, False], ids=["weights", "none"])
@pytest.mark.parametrize("mask", [None, "causal", "padded", "both"])
def test_the_fast_path_stays_the_fast_path(mask: str | None, need: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module = nn.MultiheadAttention(E, H, batch_first=True).eval()
    x, masks = torch.randn(B, L, E), {}
    if mask in ("causal", "both"):
        masks["attn_mask"] = torch.ones(L, L).triu(1).bool()
    if mask in ("padded", "both"):
        masks["key_padding_mask"] = torch.arange(L) >= torch.tensor([[L], [2], [3]])
    monkeypatch.setattr(F, "multi_head_attention_forward", raise_on_slow_path)
    with torch.no_grad():
        recording = observe_unchanged(module, lambda: module(x, x, x, need_weights=need, **masks), item=1)
    monkeypatch.undo()
    close(recording["MultiheadAttention"].dense(), weigh_by_definition(module, x, x, **masks)[1])


def raise_on_slow_path(*arguments: Any, **named: Any) -> None:
    raise AssertionError("this is not the fast path")


@pytest.mark.parametrize("first", [True, False], ids=["norm first", "norm last"])
@pytest.mark.parametrize("way", ["train", "eval", "fast"])
def test_an_encoder(way: str, first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = nn.TransformerEncoderLayer(E, H, 17, dropout=0.2, batch_first=True, norm_first=first)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(way == "train")
    x, mask = torch.randn(B, L, E), torch.ones(L, L).triu(1).bool()
    with torch.no_grad() if way == "fast" else nullcontext(), monkeypatch.context() as patch:
        if way == "fast":
            patch.setattr(F, "multi_head_attention_forward", raise_on_slow_path)
        recording = observe_unchanged(encoder, lambda: encoder(x, mask=mask), item=1)
    assert list(recording) == ["layers.0.self_attn", "layers.1.self_attn"]
    own: Any = encoder.layers[0]
    inner = own.norm1(x) if first else x
    close(recording["layers.0.self_attn"].dense(), weigh_by_definition(own.self_attn, inner, inner, attn_mask=mask)[1])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_padding_that_the_fast_path_takes_out_is_not_seen() -> None:
    layer = nn.TransformerEncoderLayer(E, H, 17, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, padding = torch.randn(B, L, E), torch.arange(L) >= torch.tensor([[L], [3], [2]])
    with torch.no_grad():
        recording = observe_unchanged(encoder, lambda: encoder(x, src_key_padding_mask=padding), item=1)
        alone = observe_unchanged(encoder, lambda: encoder(x[1:2, :3]))
    for name, seen in recording.items():
        assert seen.shape == (H, 3, 3)
        close(seen.dense(), alone[name].dense())


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_a_transformer_with_decoder(training: bool) -> None:
    model = nn.Transformer(E, H, 2, 2, 17, dropout=0.1, batch_first=True).train(training)
    source, target = torch.randn(B, S, E), torch.randn(B, L, E)
    causal = nn.Transformer.generate_square_subsequent_mask(L)
    recording = observe_unchanged(model, lambda: model(source, target, tgt_mask=causal, tgt_is_causal=True))
    shapes = {name: seen.shape[1:] for name, seen in recording.items()}
    ours = {f"encoder.layers.{n}.self_attn": (S, S) for n in range(2)}
    for n in range(2):
        ours |= {f"decoder.layers.{n}.self_attn": (L, L), f"decoder.layers.{n}.multihead_attn": (L, S)}
    assert shapes == ours
    first: Any = model.decoder.layers[0]
    close(
        recording["decoder.layers.0.self_attn"].dense(),
        weigh_by_definition(first.self_attn, target, target, attn_mask=causal)[0],
    )
    assert recording["decoder.layers.1.self_attn"].dense().triu(1).eq(0).all()


class FusedModule(nn.Module):
    """Calls the fused function as it was told to."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, key, **self.options)


def weigh_by_textbook(query: Tensor, key: Tensor, scale: float, bias: Tensor | None = None) -> Tensor:
    scores = query @ key.repeat_interleave(query.shape[-3] // key.shape[-3], -3).mT * scale
    return (scores if bias is None else scores + bias).softmax(-1).nan_to_num()


HIDDEN = torch.zeros(L, S).masked_fill(torch.arange(L * S).view(L, S) % 3 == 0, float("-inf"))
FUSED = {
    "causal": ({"is_causal": True}, torch.full((L, S), float("-inf")).triu(1)),
    "scaled": ({"scale": 0.3}, None),
    "bool": ({"attn_mask": HIDDEN == 0}, HIDDEN),
    "float": ({"attn_mask": HIDDEN - 1}, HIDDEN),
    "batch": ({"attn_mask": torch.stack([HIDDEN, HIDDEN.flip(0), HIDDEN])[:, None]}, HIDDEN.flip(0)),
    "empty row": ({"attn_mask": (torch.arange(L) > 0)[:, None].expand(L, S)}, torch.full((L, 1), 0.0)),
    "dropout": ({"dropout_p": 0.5}, None),
    "groups": ({"enable_gqa": True}, None),
}


@pytest.mark.parametrize("case", FUSED)
def test_the_fused_function(case: str) -> None:
    options, bias = FUSED[case]
    query, key = torch.randn(B, 4, L, 3), torch.randn(B, 2 if case == "groups" else 4, S, 3)
    if case == "empty row":
        bias = torch.zeros(L, S)
        bias[0] = float("-inf")
    expected = weigh_by_textbook(query, key, options.get("scale", 3**-0.5), bias)
    model = FusedModule(**options)
    recording = observe_unchanged(model, lambda: model(query, key), item=1)
    close(recording["FusedModule"].dense(), expected[1])
    tiles = observe_unchanged(model, lambda: model(query, key), item=1, keep="tiles")
    close(tiles["FusedModule"].dense(), expected[1])
    statistics = observe_unchanged(model, lambda: model(query, key), item=1, keep="statistics", top=2)["FusedModule"]
    close(statistics.entropy(), torch.special.entr(expected[1]).sum(-1))
    close(statistics.received_weight(), expected[1].sum(-2))
    close(statistics.top(2).weights, expected[1].topk(2).values)


@pytest.mark.parametrize("axes", [2, 3, 5])
def test_the_fused_function_of_other_shapes(axes: int) -> None:
    lead = {2: (), 3: (B,), 5: (2, 3, 4)}[axes]
    query, key = torch.randn(*lead, L, 3), torch.randn(*lead, S, 3)
    model, item = FusedModule(), 0 if axes == 2 else 1 if axes == 3 else 4
    expected = (query @ key.mT * 3**-0.5).softmax(-1)
    expected = expected[None] if axes == 2 else expected[1][None] if axes == 3 else expected[1, 1]
    close(observe_unchanged(model, lambda: model(query, key), item=item)["FusedModule"].dense(), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_numbers(dtype: torch.dtype) -> None:
    query, key = torch.randn(B, H, L, 3, dtype=dtype), torch.randn(B, H, S, 3, dtype=dtype)
    model = FusedModule()
    seen = observe_unchanged(model, lambda: model(query, key))["FusedModule"].dense()
    close(seen.double(), (query.double() @ key.double().mT * 3**-0.5).softmax(-1)[0])


def test_gradients_are_the_same() -> None:
    encoder = nn.TransformerEncoderLayer(E, H, 17, dropout=0.2, batch_first=True)
    x = torch.randn(B, L, E, requires_grad=True)

    def gradients() -> tuple[Tensor, ...]:
        return torch.autograd.grad(encoder(x).square().sum(), (x, *encoder.parameters()))

    assert len(observe_unchanged(encoder, gradients)) == 1
