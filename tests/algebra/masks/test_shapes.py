"""A shape that could mean two things is refused; a padding mask has a word of its own; heads may see different keys."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import nn

from regard import Causal, CenteredWindow, Documents, InputError, KindError, Lengths, Mask, Prefix, attend
from regard.algebra.masks.conversion import from_multihead, from_sdpa
from regard.algebra.shapes import Tensor
from regard.layers import Attention

B, H, L, S, D = 3, 4, 5, 7, 8


def rows(*lead: int, queries: int = L, keys: int = S) -> tuple[Tensor, Tensor, Tensor]:
    noise = torch.Generator().manual_seed(0)
    return tuple(torch.randn(*lead, n, D, generator=noise) for n in (queries, keys, keys))  # type: ignore[return-value]


def make_padding(batch: int = B, keys: int = S) -> Tensor:
    """True where a key is real; each sequence has its own, and not only at the end."""
    real = torch.arange(keys) <= torch.arange(batch)[:, None]
    return real | (torch.arange(keys) == keys - 1)


@pytest.mark.parametrize("queries", [1, B, L])
def test_keep_keys_and_drop_keys_hide_the_padding_of_each_sequence(queries: int) -> None:
    query, key, value = rows(B, queries=queries)
    real = make_padding()
    for mask in (Mask.keep_keys(real), Mask.drop_keys(~real)):
        output = attend(query, key, value, mask=mask).output
        for sequence in range(B):
            seen = real[sequence]
            alone = attend(query[sequence], key[sequence, seen], value[sequence, seen]).output
            assert torch.allclose(output[sequence], alone, atol=1e-6)


def test_keep_keys_takes_one_sequence_and_any_lead_axes() -> None:
    query, key, value = rows(B, H)
    real = make_padding()
    expected = attend(query, key, value, mask=Lengths(torch.full((B, 1), S)) & Mask.keep_keys(real[:, None])).output
    assert torch.equal(attend(query, key, value, mask=Mask.keep_keys(real).add_head_axis()).output, expected)
    one = attend(query[0], key[0], value[0], mask=Mask.keep_keys(real[0])).output
    assert torch.allclose(one, expected[0], atol=1e-6)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("word", ["keep_keys", "drop_keys"])
def test_a_padding_mask_is_a_bool_tensor(word: str) -> None:
    with pytest.raises(KindError, match=rf"expected a bool tensor; fix: write Mask\.{word}\(tensor\.bool\(\)\)"):
        getattr(Mask, word)(torch.ones(2, 3))
    with pytest.raises(InputError, match=re.escape("expected at least (keys,)")):
        getattr(Mask, word)(torch.tensor(True))


@pytest.mark.parametrize("lead", [(L,), (L, H)], ids=str)
def test_a_table_that_may_be_padding_or_queries_is_refused(lead: tuple[int, ...]) -> None:
    query, key, value = rows(*lead)
    table = make_padding(L)
    sentence = (
        "mask.table: got 5 rows, expected no doubt whether they are the 5 queries or the 5 sequences; "
        "fix: write Mask.keep_keys(tensor) if each is the padding of a sequence, tensor[None] if each is a query"
    )
    for mask in (Mask.keep(table), Mask.drop(table), Causal() & Mask.keep(table), ~Mask.keep(table)):
        with pytest.raises(InputError, match=re.escape(sentence)):
            attend(query, key, value, mask=mask)
    shared = attend(query, key, value, mask=Mask.keep(table[None])).output
    assert torch.equal(shared, attend(query, key, value, mask=from_sdpa(table)).output)
    assert torch.equal(shared, attend(query, key, value, mask=from_multihead(~table)).output)
    assert torch.allclose(shared[0], attend(query[:1], key[:1], value[:1], mask=Mask.keep(table)).output[0], atol=1e-6)


def test_a_table_that_can_only_be_of_queries_is_taken() -> None:
    table = make_padding(L)
    for lead in ((), (B,), (B, L), (1,)):
        query, key, value = rows(*lead)
        attend(query, key, value, mask=Mask.keep(table))
    with pytest.raises(InputError, match=re.escape("write Mask.keep_keys(tensor) for the padding of each sequence")):
        attend(*rows(B), mask=Mask.keep(make_padding(B)))


BY_SEQUENCE: dict[str, Callable[[int], Mask]] = {
    "lengths": lambda n: Lengths(torch.arange(n) + 1),
    "prefix": lambda n: Prefix(torch.arange(n) + 1),
    "around": lambda n: CenteredWindow(torch.arange(n)[:, None] + torch.zeros(n, L), 1),
    "documents": lambda n: Documents(torch.zeros(n, S).long(), torch.zeros(n, L).long()),
    "table": lambda n: Mask.keep(torch.ones(n, L, S, dtype=torch.bool)),
}


@pytest.mark.parametrize("name", BY_SEQUENCE)
def test_axes_that_may_be_sequences_or_heads_are_refused(name: str) -> None:
    sentence = "got lead axes (3,), expected no doubt whether they are the first or the last of (3, 3); "
    with pytest.raises(InputError, match=re.escape(sentence)):
        attend(*rows(B, B), mask=BY_SEQUENCE[name](B))
    attend(*rows(B, B), mask=BY_SEQUENCE[name](B).add_head_axis())
    attend(*rows(H, B), mask=BY_SEQUENCE[name](B))


@pytest.mark.parametrize("lead", [(B,), (B, H)], ids=str)
def test_a_query_without_an_axis_of_queries_is_refused(lead: tuple[int, ...]) -> None:
    _, key, value = rows(*lead)
    query = torch.randn(B, D)
    shared = "query[None]" if len(lead) == 1 else "query[None, None]"
    sentence = (
        f"query: got a float32 tensor of shape (3, 8) beside keys and values of lead axes {lead}, "
        "expected an axis of queries behind the lead axes; "
        f"fix: write query.unsqueeze(-2) if each sequence has one query, {shared} if all share these"
    )
    with pytest.raises(InputError, match=re.escape(sentence)):
        attend(query, key, value)
    if len(lead) == 1:
        attend(query.unsqueeze(-2), key, value)
    attend(query[(None,) * len(lead)], key, value)


def test_queries_that_all_sequences_share_are_taken() -> None:
    _, key, value = rows(B)
    for queries in (1, 2, L):
        assert attend(torch.randn(queries, D), key, value).output.shape == (B, queries, D)
    with pytest.raises(InputError, match="expected an axis of queries"):
        attend(torch.randn(B, B, D), *rows(B, B)[1:])


@pytest.mark.parametrize("groups", [1, 2, H])
@pytest.mark.parametrize("batch", [1, B, H, L])
def test_heads_may_see_different_keys_in_a_layer(batch: int, groups: int) -> None:
    torch.manual_seed(0)
    layer = Attention(D, heads=H, groups=groups)
    x = torch.randn(batch, L, D)
    tables = torch.rand(batch, H, L, L) < 0.6
    memory = layer.remember(x, mask=Mask.keep_keys(make_padding(batch, L)))
    weights = layer.attend(x, memory, mask=Mask.keep(tables) & Causal()).weights.dense()
    for head in range(H):
        alone = layer.attend(x, memory, mask=Mask.keep(tables[:, head]) & Causal()).weights.dense()
        assert torch.allclose(weights[:, head], alone[:, head])
    shared = layer.attend(x, memory, mask=Mask.keep(tables[:, :1])).weights.dense()
    assert torch.allclose(shared, layer.attend(x, memory, mask=Mask.keep(tables[:, 0])).weights.dense())


@pytest.mark.parametrize("batch", [1, H, L])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("tables", ["none", "one", "each"])
def test_what_from_multihead_gives_passes_through_a_layer(tables: str, padded: bool, batch: int) -> None:
    torch.manual_seed(2)
    theirs = nn.MultiheadAttention(D, H, batch_first=True).eval()
    x = torch.randn(batch, L, D)
    own = torch.eye(L, dtype=torch.bool)
    drop = {"none": None, "one": torch.rand(L, L) < 0.5, "each": torch.rand(batch * H, L, L) < 0.5}[tables]
    drop = None if drop is None else drop & ~own
    pad = ~make_padding(batch, L) if padded else None
    expected = theirs(x, x, x, attn_mask=drop, key_padding_mask=pad, need_weights=False)[0]
    layer = Attention.from_torch(theirs)
    output = layer(x, layer.remember(x), mask=from_multihead(drop, pad, heads=H))
    known = ~torch.isnan(expected)  # theirs is NaN where a query sees nothing
    assert torch.allclose(output[known], expected[known], atol=1e-5)
