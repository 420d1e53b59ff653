"""Learned queries that pool a sequence."""

import pytest
import torch

from regard.algebra import catalog
from regard.algebra.catalog import Sizes
from regard.algebra.masks import Lengths
from regard.algebra.normalizers import Sparsemax
from regard.algebra.scores import Gaussian
from regard.layers import Mechanism, Pooling

B, Q, S, D, E = 2, 3, 7, 11, 13


def test_learned_query_is_the_formula() -> None:
    pooling = Pooling(D).double()
    x = torch.randn(B, S, D).double()
    for b in range(B):
        scores = torch.stack([pooling.query[0] @ x[b, i] for i in range(S)])
        weights = scores.exp() / scores.exp().sum()
        torch.testing.assert_close(pooling(x)[b, 0], sum(weights[i] * x[b, i] for i in range(S)))
        torch.testing.assert_close(pooling.attend(x).weights.dense()[b, 0], weights)


def test_additive_is_the_formula() -> None:
    pooling = Pooling.additive(D, E, queries=Q).double()
    x = torch.randn(B, S, D).double()
    linear = pooling.key[0]
    weights = (torch.tanh(x @ linear.weight.T + linear.bias) @ pooling.query.T).softmax(1)
    torch.testing.assert_close(pooling(x), weights.transpose(1, 2) @ x)
    assert pooling(x).shape == (B, Q, D)


def test_each_query_pools_alone() -> None:
    pooling, one = Pooling(D, queries=Q).double(), Pooling(D).double()
    x = torch.randn(B, S, D).double()
    for query in range(Q):
        one.query.data.copy_(pooling.query[query : query + 1])
        torch.testing.assert_close(pooling(x)[:, query : query + 1], one(x))


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), 1e30])
def test_padding_does_not_matter_and_empty_gives_zero(poison: float) -> None:
    pooling = Pooling.additive(D, E, queries=Q).double()
    x = torch.randn(B, S, D).double()
    dirty = x.clone()
    dirty[0, 4:] = dirty[1] = poison
    pooled = pooling(dirty, mask=Lengths(torch.tensor([4, 0])))
    torch.testing.assert_close(pooled[0], pooling(x[:1, :4])[0])
    assert torch.equal(pooled[1], torch.zeros(Q, D).double())
    pooled.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in pooling.parameters())


@pytest.mark.parametrize("name", catalog.NORMALIZERS)
def test_any_mechanism(name: str) -> None:
    sizes = Sizes(D, D, D, queries=Q, keys=S)
    mechanism = Mechanism(Gaussian(), normalizer=catalog.NORMALIZERS[name](sizes))
    assert Pooling(D, queries=Q, mechanism=mechanism)(torch.randn(B, S, D)).shape == (B, Q, D)


def test_sparse_pooling_picks() -> None:
    pooling = Pooling(D, mechanism=Mechanism(normalizer=Sparsemax()))
    weights = pooling.attend(10 * torch.randn(B, S, D)).weights.dense()
    assert (weights == 0).any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, 1))
