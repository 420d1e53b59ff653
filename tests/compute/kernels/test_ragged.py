"""Attention within short sequences, one after another, is softmax attention within each."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from regard.compute.kernels import native, noise
from regard.compute.kernels.ragged import Bounds, Heads, across, within

D, E = 5, 3
QUERIES, KEYS = torch.tensor([4, 0, 1, 7, 2]), torch.tensor([6, 2, 17, 7, 3])

pytestmark = pytest.mark.skipif(native.load_library() is None, reason="no compiler here")


def numbers(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def definition(query: Tensor, key: Tensor, value: Tensor, lengths: tuple[Tensor, Tensor], heads: Heads) -> Tensor:
    """Sequence by sequence, head by head, with the noise of dropout by address."""
    seed, rows = noise.draw_seed(), []
    queries, keys = lengths[0].tolist(), lengths[1].tolist()
    parts = zip(query.split(queries), key.split(keys), value.split(keys), strict=True)
    for number, (q, k, v) in enumerate(parts):
        outputs = []
        for head in range(heads.heads):
            group = head * heads.groups // heads.heads
            own, its, read = q.chunk(heads.heads, 1)[head], k.chunk(heads.groups, 1)[group], v.chunk(heads.groups, 1)
            scores = heads.scale * own @ its.T
            if heads.causal:
                late = torch.arange(len(k)) > torch.arange(len(q))[:, None] + len(k) - len(q)
                scores = scores.masked_fill(late, float("-inf"))
            weights = scores.softmax(-1)
            if heads.dropout and weights.numel():
                places = number * heads.heads + head + 1
                keep = noise.draw_dropout_factors(seed, (places,), torch.arange(len(q)), torch.arange(len(k)), heads.dropout)
                weights = weights * (keep[-1] > 0) / (1 - heads.dropout)
            outputs.append(weights @ read[group])
        rows.append(torch.cat(outputs, 1))
    return torch.cat(rows)


HEADS = {
    "heads": Heads(3, 3, 0.7),
    "grouped": Heads(4, 2, 0.4),
    "shared": Heads(3, 1, 0.7),
    "dropout": Heads(3, 3, 0.7, dropout=0.4),
    "grouped-dropout": Heads(4, 2, 0.4, dropout=0.3),
}


@pytest.mark.parametrize("name", HEADS)
def test_across_is_the_definition(name: str) -> None:
    heads = HEADS[name]
    query, key = numbers(int(QUERIES.sum()), heads.heads * D), numbers(int(KEYS.sum()), heads.groups * D)
    value = numbers(int(KEYS.sum()), heads.groups * E)
    torch.manual_seed(3)
    expected = definition(query, key, value, (QUERIES, KEYS), heads)
    torch.manual_seed(3)
    found = across(query, key, value, (Bounds.of(QUERIES), Bounds.of(KEYS)), heads)
    same(found, expected, (query, key, value))


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("causal", [False, True])
def test_within_is_the_definition(name: str, causal: bool) -> None:
    heads = HEADS[name]._replace(causal=causal)
    lengths = torch.tensor([4, 0, 19, 1, 16])
    packed = numbers(int(lengths.sum()), (heads.heads + 2 * heads.groups) * D)
    parts = packed.split([heads.heads * D, heads.groups * D, heads.groups * D], dim=1)
    torch.manual_seed(3)
    expected = definition(*parts, (lengths, lengths), heads)
    torch.manual_seed(3)
    same(within(packed, Bounds.of(lengths), heads), expected, (packed,))


def same(found: Tensor, expected: Tensor, leaves: tuple[Tensor, ...]) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    upstream = torch.randn_like(expected)
    ours = torch.autograd.grad(found, leaves, upstream, retain_graph=True)
    theirs = torch.autograd.grad(expected, leaves, upstream)
    for left, right in zip(ours, theirs, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-11)


def test_causal_queries_are_the_last_keys() -> None:
    heads, queries, keys = Heads(1, 1, 1.0, causal=True), torch.tensor([2, 3]), torch.tensor([5, 2])
    query, key, value = numbers(5, D), numbers(7, D), numbers(7, E)
    found = across(query, key, value, (Bounds.of(queries), Bounds.of(keys)), heads)
    expected = torch.softmax(query[:1] @ key[:4].T, -1) @ value[:4]
    torch.testing.assert_close(found[:1], expected)
    assert not found[2].any()  # three queries, two keys: the first query is before both


def test_gradients() -> None:
    bounds = Bounds.of(torch.tensor([3, 2])), Bounds.of(torch.tensor([2, 4]))
    heads = Heads(2, 1, 0.9)
    assert gradcheck(lambda q, k, v: across(q, k, v, bounds, heads), (numbers(5, 4), numbers(6, 2), numbers(6, 3)))
    assert gradcheck(lambda p: within(p, bounds[0], heads._replace(causal=True)), (numbers(5, 8),))


def test_float32_is_as_exact_as_torch() -> None:
    heads, lengths = Heads(2, 2, D**-0.5), torch.tensor([9, 33])
    packed = numbers(42, 6 * D)
    parts = packed.float().chunk(3, dim=1)
    exact = within(packed, Bounds.of(lengths), heads)
    ours = within(packed.float(), Bounds.of(lengths), heads)
    plain = definition(*parts, (lengths, lengths), heads)
    error, allowed = (ours.double() - exact).abs().max(), (plain.double() - exact).abs().max()
    assert error <= 2 * (allowed + exact.abs().max() * torch.finfo(torch.float32).eps)
