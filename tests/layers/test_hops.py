"""A memory read several times."""

import pytest
import torch
from torch import nn

from regard.algebra.masks import Lengths
from regard.algebra.normalizers import Sparsemax
from regard.errors import InputError
from regard.layers import Hops, Mechanism, Memory

B, L, S, D, N = 2, 3, 7, 11, 5


def draw_memory() -> tuple[torch.Tensor, Memory]:
    return torch.randn(B, L, D).double(), Memory(torch.randn(B, S, D).double(), torch.randn(B, S, D).double())


def test_hops_are_the_formula() -> None:
    """Miller et al. 2016, eq. 1-3."""
    layer = Hops.linear(D, hops=N).double()
    query, memory = draw_memory()
    hopped = layer(query, memory)
    for b in range(B):
        for i in range(L):
            q = query[b, i]
            for j in range(N):
                weights = (memory.key[b] @ q).softmax(0)
                torch.testing.assert_close(hopped.hops[j].weights.dense()[b, i], weights)
                q = layer.updates[j].weight @ (q + weights @ memory.value[b])
            torch.testing.assert_close(hopped.output[b, i], q)


def test_identity_updates_are_end_to_end_memory_networks() -> None:
    """Sukhbaatar et al. 2015, eq. 4: u + o."""
    query, memory = draw_memory()
    other = Memory(torch.randn(B, S, D).double(), torch.randn(B, S, D).double())
    hopped = Hops([nn.Identity(), nn.Identity()])(query, [memory, other])
    first = query + (query @ memory.key.transpose(1, 2)).softmax(-1) @ memory.value
    expected = first + (first @ other.key.transpose(1, 2)).softmax(-1) @ other.value
    torch.testing.assert_close(hopped.output, expected)


def test_padding_does_not_matter_and_an_empty_memory_answers_zero() -> None:
    layer = Hops.linear(D, hops=N).double()
    query, memory = draw_memory()
    memory.key[0, 4:], memory.value[0, 4:], memory.key[1], memory.value[1] = (float("nan"),) * 4
    hopped = layer(query, Memory(memory.key, memory.value, Lengths(torch.tensor([4, 0]))))
    short = layer(query[:1], Memory(memory.key[:1, :4], memory.value[:1, :4]))
    torch.testing.assert_close(hopped.output[:1], short.output)
    assert all(torch.equal(hop.output[1], torch.zeros(L, D).double()) for hop in hopped.hops)
    hopped.output.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


def test_sparse_hops() -> None:
    query, memory = draw_memory()
    hopped = Hops.linear(D, mechanism=Mechanism(normalizer=Sparsemax())).double()(query, memory)
    assert len(hopped.hops) == 3
    assert all((hop.weights.dense() == 0).any() for hop in hopped.hops)


def test_messages() -> None:
    query, memory = draw_memory()
    with pytest.raises(InputError) as caught:
        Hops([nn.Identity()])(query, [memory, memory])
    expected = (
        "memory: got 2 memories, expected one for each of 1 hops; fix: give one memory for all hops, or one for each"
    )
    assert str(caught.value) == expected
    with pytest.raises(InputError) as caught:
        Hops([])
    expected = "updates: got none, expected one for each hop; fix: write Hops.linear(size, hops=3)"
    assert str(caught.value) == expected
