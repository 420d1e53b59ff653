"""Converters, each against the real function whose convention it knows."""

import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard import Causal, Dense, InputError, KindError, Lengths, Mask, Window, attend
from regard.algebra.masks.conversion import (
    from_huggingface,
    from_multihead,
    from_sdpa,
    from_valid_lengths,
    to_huggingface,
    to_multihead,
    to_sdpa,
    to_valid_lengths,
)
from regard.algebra.shapes import Tensor
from regard.layers import Attention

B, H, L, S, D = 2, 3, 5, 7, 11
MASKS: dict[str, Mask] = {
    "causal": Causal(),
    "window": Window(before=2, after=1),
    "lengths": Lengths(torch.tensor([[3], [7]])),
    "both": Causal() & Lengths(torch.tensor([[3], [7]])),
    "table": Mask.keep(torch.rand(B, H, L, S, generator=torch.Generator().manual_seed(0)) < 0.6),
}


def tensors() -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = (torch.randn(B, H, n, D, dtype=torch.float64) for n in (L, S, S))
    return query, key, value


@pytest.mark.parametrize("name", MASKS)
def test_to_sdpa_is_what_sdpa_means(name: str) -> None:
    query, key, value = tensors()
    theirs = F.scaled_dot_product_attention(query, key, value, attn_mask=to_sdpa(MASKS[name], L, S))
    assert torch.allclose(attend(query, key, value, mask=MASKS[name]).output, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_from_sdpa_reads_what_sdpa_means(name: str, kind: str) -> None:
    query, key, value = tensors()
    cells = MASKS[name].table(L, S)
    given = cells if kind == "bool" else torch.zeros(cells.shape).double().masked_fill(~cells, -torch.inf)
    theirs = F.scaled_dot_product_attention(query, key, value, attn_mask=given)
    assert torch.allclose(attend(query, key, value, mask=from_sdpa(given)).output, theirs, rtol=0, atol=1e-12)


def test_a_float_mask_with_other_numbers_is_a_bias() -> None:
    query, key, value = tensors()
    table = torch.randn(L, S, dtype=torch.float64)
    sentence = "attn_mask: got numbers other than 0 and -inf, expected a mask; fix: pass bias=Dense(attn_mask) instead"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        from_sdpa(table)
    theirs = F.scaled_dot_product_attention(query, key, value, attn_mask=table)
    assert torch.allclose(attend(query, key, value, bias=Dense(table)).output, theirs, rtol=0, atol=1e-12)


def build_multihead() -> nn.MultiheadAttention:
    """Identity projections, so that only the heads and the mask are at work."""
    module = nn.MultiheadAttention(H * D, H, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.eye(H * D).repeat(3, 1))
        module.out_proj.weight.copy_(torch.eye(H * D))
    return module


def join_heads(tensor: Tensor) -> Tensor:
    return tensor.transpose(1, 2).flatten(2)


def attend_by_torch(query: Tensor, key: Tensor, value: Tensor, **masks: Tensor | None) -> Tensor:
    output, _ = build_multihead()(*(join_heads(t) for t in (query, key, value)), need_weights=False, **masks)
    assert isinstance(output, Tensor)
    return output


@pytest.mark.parametrize("name", MASKS)
def test_to_multihead_is_what_multihead_attention_means(name: str) -> None:
    query, key, value = tensors()
    mask = MASKS[name] | Mask.keep(torch.arange(S)[None] == 0)  # where nothing is allowed, theirs is NaN
    mine = join_heads(attend(query, key, value, mask=mask).output)
    given = to_multihead(mask, L, S, heads=H)
    assert given.dim() == (2 if mask.table(L, S).dim() == 2 else 3)
    assert torch.allclose(mine, attend_by_torch(query, key, value, attn_mask=given), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("padded", [False, True])
def test_from_multihead_reads_what_multihead_attention_means(dims: int, padded: bool) -> None:
    query, key, value = tensors()
    hidden = torch.rand(*((B * H, L, S) if dims == 3 else (L, S))) < 0.4
    hidden[..., 0] = False
    padding = torch.arange(S) >= torch.tensor([[4], [S]]) if padded else None
    mask = from_multihead(hidden, padding, heads=H)
    mine = join_heads(attend(query, key, value, mask=mask if dims == 3 else mask.add_head_axis()).output)
    given = attend_by_torch(query, key, value, attn_mask=hidden, key_padding_mask=padding)
    assert torch.allclose(mine, given, rtol=0, atol=1e-12)


def test_from_multihead_of_a_single_sequence() -> None:
    query, key, value = (tensor[0] for tensor in tensors())
    padding = torch.arange(S) >= 4
    output, _ = build_multihead()(
        *(t.transpose(0, 1).flatten(1) for t in (query, key, value)), need_weights=False, key_padding_mask=padding
    )
    mine = attend(query, key, value, mask=from_multihead(key_padding_mask=padding)).output
    assert torch.allclose(mine.transpose(0, 1).flatten(1), output, rtol=0, atol=1e-12)


def test_multihead_masks_go_there_and_back() -> None:
    table = torch.rand(B, H, L, S) < 0.5
    given = to_multihead(Mask.keep(table), L, S, heads=H)
    assert torch.equal(from_multihead(given, heads=H).table(L, S), table)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask"])
def test_a_float_mask_of_multihead_attention_is_one_sentence(name: str) -> None:
    sentence = (
        f"{name}: got a float32 tensor of shape (5, 7), expected a bool tensor; "
        "fix: write mask == float('-inf') for a float mask"
    )
    with pytest.raises(KindError, match=f"^{re.escape(sentence)}$"):
        from_multihead(**{name: torch.zeros(5, 7)})  # type: ignore[arg-type]


def test_masks_for_batch_and_heads_need_the_number_of_heads() -> None:
    coming = "heads: got None, expected the number of heads, which attn_mask holds with the batch; fix: pass heads=…"
    with pytest.raises(InputError, match=f"^{re.escape(coming)}$"):
        from_multihead(torch.zeros(B * H, L, S, dtype=torch.bool))
    going = (
        "heads: got None, expected the number of heads, because the mask is not one table for all; fix: pass heads=…"
    )
    with pytest.raises(InputError, match=f"^{re.escape(going)}$"):
        to_multihead(Lengths(torch.tensor([3, 5])), L, S)


def test_huggingface_masks_are_ones_at_the_tokens() -> None:
    tokens = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]])  # padded right and left
    mask = from_huggingface(tokens)
    assert mask.table(2, 5).shape == (2, 2, 5)
    assert mask.add_head_axis().table(2, 5).shape == (2, 1, 2, 5)
    assert torch.equal(mask.table(2, 5)[:, 0].long(), tokens)
    assert torch.equal(to_huggingface(mask, 5), tokens)
    assert to_huggingface(Lengths(torch.tensor([2, 5])[:, None]), 5).tolist() == [[1, 1, 0, 0, 0], [1] * 5]


def test_a_layer_takes_the_masks_of_others_as_they_come() -> None:
    layer, x = Attention(6, heads=2).double(), torch.randn(2, 5, 6, dtype=torch.float64)
    tokens = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    true = layer(x, layer.remember(x, mask=Lengths(torch.tensor([3, 5]))))
    for mask in (from_huggingface(tokens), from_multihead(key_padding_mask=tokens == 0)):
        assert torch.equal(layer(x, layer.remember(x, mask=mask)), true)
        assert torch.equal(layer(x, layer.remember(x), mask=mask), true)


def test_what_is_no_huggingface_mask_is_one_sentence() -> None:
    flat = (
        "attention_mask: got a int64 tensor of shape (2, 1, 5), expected shape (batch, keys); "
        "fix: pass the tokenizer's own mask"
    )
    with pytest.raises(InputError, match=f"^{re.escape(flat)}$"):
        from_huggingface(torch.ones(2, 1, 5, dtype=torch.long))
    causal = (
        "mask: got Causal, expected a mask that is the same for every query; "
        "fix: pass a mask of keys alone, such as Lengths; causality is the model's own"
    )
    with pytest.raises(InputError, match=f"^{re.escape(causal)}$"):
        to_huggingface(Causal(), 5)
    heads = (
        "mask: got lead axes (2, 3), expected one axis, of sequences; "
        "fix: pass a mask of sequences alone, such as Lengths(lengths)"
    )
    with pytest.raises(InputError, match=f"^{re.escape(heads)}$"):
        to_huggingface(Mask.keep(torch.ones(2, 3, 1, 5, dtype=torch.bool)), 5)


def masked_softmax_of_d2l(scores: Tensor, valid: Tensor) -> Tensor:
    """Return d2l.masked_softmax, as the book prints it: (batch, queries, keys), −1e6 beyond the valid length."""
    shape = scores.shape
    valid = torch.repeat_interleave(valid, shape[1]) if valid.dim() == 1 else valid.reshape(-1)
    flat = scores.reshape(-1, shape[-1]).clone()
    flat[torch.arange(shape[-1])[None, :] >= valid[:, None]] = -1e6
    return torch.softmax(flat.reshape(shape), dim=-1)


@pytest.mark.parametrize("valid", [torch.tensor([3, 7]), torch.tensor([[1, 2, 3, 4, 5], [7, 6, 5, 4, 3]])], ids=str)
def test_valid_lengths_are_d2ls(valid: Tensor) -> None:
    query, key, value = (torch.randn(B, n, D, dtype=torch.float64) for n in (L, S, S))
    mask = from_valid_lengths(valid, keys=S)
    weights = masked_softmax_of_d2l(query @ key.mT / D**0.5, valid)
    assert torch.allclose(attend(query, key, value, mask=mask).output, weights @ value, rtol=0, atol=1e-12)


def test_valid_lengths_go_there_and_back() -> None:
    valid = torch.tensor([0, 3, 7])
    assert torch.equal(to_valid_lengths(from_valid_lengths(valid), 7), valid)
    assert int(to_valid_lengths(Mask.keep(torch.tensor([[True, True, False]])), 3)) == 2


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        (
            ~Lengths(torch.tensor(3)),
            "mask: got Complement, expected allowed keys that come first, without gaps; "
            "fix: use to_sdpa, which can write any mask",
        ),
        (
            Causal(),
            "mask: got Causal, expected a mask that is the same for every query; "
            "fix: pass a mask of keys alone, such as Lengths",
        ),
        (
            Mask.keep(torch.ones(3, 5, dtype=torch.bool).tril()),
            "mask: got Table, expected a mask that is the same for every query; "
            "fix: pass a mask of keys alone, such as Lengths",
        ),
    ],
    ids=["left padding", "causal", "table"],
)
def test_what_has_no_valid_lengths_is_one_sentence(mask: Mask, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        to_valid_lengths(mask, 5)


def test_lengths_of_single_queries_need_the_number_of_keys() -> None:
    sentence = (
        "keys: got None, expected the number of keys, because each query has its own length; "
        "fix: write from_valid_lengths(valid, keys=…)"
    )
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        from_valid_lengths(torch.ones(2, 5, dtype=torch.long))
