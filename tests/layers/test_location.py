"""Location-aware attention and coverage: what was looked at before changes where to look now."""

import pytest
import torch
from torch import nn

from regard.algebra.masks import Lengths
from regard.algebra.scores import Additive
from regard.errors import InputError
from regard.layers import (
    Attention,
    Coverage,
    LocationFeatures,
    Mechanism,
    Projections,
    build_initial_weights,
    coverage_loss,
)

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13


def build_bahdanau() -> Attention:
    parts = Projections(query=nn.Linear(E, D, bias=False), key=nn.Linear(E, D))
    return Attention(parts, mechanism=Mechanism(Additive.projected(D))).double()


def test_location_features_are_the_formula() -> None:
    """Chorowski et al. 2015, eq. 8-9: f = F * α, then v tanh(W s + V h + U f + b)."""
    layer, location = build_bahdanau(), LocationFeatures(D, channels=2, width=3).double()
    query, source = torch.randn(B, 1, E).double(), torch.randn(B, S, E).double()
    memory, previous = layer.remember(source), torch.rand(B, 1, S).double()
    weights = layer.attend(query, location(memory, previous)).weights.dense()[:, 0, 0]
    filters, parts, score = location.filters.weight[:, 0], layer.projections, layer.mechanism.score
    for b in range(B):
        scores = []
        for j in range(S):
            around = [previous[b, 0, j + o] if 0 <= j + o < S else torch.tensor(0.0) for o in (-1, 0, 1)]
            features = location.features.weight @ (filters @ torch.stack([a.double() for a in around]))
            scores.append(score.weight @ torch.tanh(parts.query(query[b, 0]) + parts.key(source[b, j]) + features))
        torch.testing.assert_close(weights[b], torch.stack(scores).softmax(0))


def test_coverage_is_the_formula() -> None:
    """See et al. 2017, eq. 10-11, over several steps."""
    layer, coverage = build_bahdanau(), Coverage(D).double()
    query, source = torch.randn(B, L, E).double(), torch.randn(B, S, E).double()
    memory, parts, score = layer.remember(source), layer.projections, layer.mechanism.score
    seen, covered = build_initial_weights(memory), torch.zeros(B, S).double()
    for t in range(L):
        attended = layer.attend(query[:, t : t + 1], coverage(memory, seen))
        hidden = parts.query(query[:, t])[:, None] + parts.key(source) + covered[..., None] * coverage.features.weight.T
        weights = (torch.tanh(hidden) @ score.weight).softmax(-1)
        torch.testing.assert_close(attended.weights.dense()[:, 0, 0], weights)
        seen, covered = seen + attended.weights.dense()[..., 0, :], covered + weights


@pytest.mark.parametrize("kind", [Coverage, LocationFeatures])
def test_it_is_fed_and_trained(kind: type[nn.Module]) -> None:
    """OpenNMT-py and eole build a coverage layer that nothing is ever fed to."""
    layer, memory_term = build_bahdanau(), kind(D).double()
    query, memory = torch.randn(B, 1, E).double(), layer.remember(torch.randn(B, S, E).double())
    start = build_initial_weights(memory)
    assert torch.equal(memory_term(memory, start).key, memory.key)
    first = layer.attend(query, memory_term(memory, start))
    second = layer.attend(query, memory_term(memory, start + first.weights.dense()[..., 0, :]))
    assert (first.output - second.output).abs().max() > 1e-4
    second.output.sum().backward()
    for parameter in memory_term.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", [Coverage, LocationFeatures])
def test_padding_does_not_matter(kind: type[nn.Module]) -> None:
    layer, term = build_bahdanau(), kind(D).double()
    query, source = torch.randn(B, L, E).double(), torch.randn(B, S, E).double()
    dirty = source.clone()
    dirty[0, 4:] = dirty[1] = float("nan")
    long, short = layer.remember(dirty, mask=Lengths(torch.tensor([4, 0]))), layer.remember(source[:1, :4])
    seen, own = build_initial_weights(long), build_initial_weights(short)
    for t in range(L):
        step = query[:, t : t + 1]
        attended, expected = layer.attend(step, term(long, seen)), layer.attend(step[:1], term(short, own))
        torch.testing.assert_close(attended.output[:1], expected.output)
        assert torch.equal(attended.output[1], torch.zeros(1, E).double())
        seen, own = seen + attended.weights.dense()[..., 0, :], own + expected.weights.dense()[..., 0, :]


def test_heads_have_their_own_past() -> None:
    layer = Attention(H * D, heads=H, mechanism=Mechanism(Additive.projected(D, heads=H))).double()
    x = torch.randn(B, S, H * D).double()
    memory, term = layer.remember(x), LocationFeatures(D).double()
    attended = layer.attend(x[:, :1], term(memory, torch.rand(B, H, S).double()))
    assert attended.weights.shape == (B, H, 1, S)


def test_coverage_loss_is_the_formula() -> None:
    """See et al. 2017, eq. 12."""
    weights = torch.rand(B, L, S).softmax(-1)
    loss = coverage_loss(weights)
    for b in range(B):
        for t in range(L):
            covered = sum((weights[b, u] for u in range(t)), torch.zeros(S))
            expected = sum(min(float(weights[b, t, j]), float(covered[j])) for j in range(S))
            assert loss[b, t].item() == pytest.approx(expected, abs=1e-6)


def test_messages() -> None:
    with pytest.raises(InputError) as caught:
        LocationFeatures(D, width=4)
    expected = "width: got 4, expected an odd number, so that the filter has a middle; fix: use 5"
    assert str(caught.value) == expected
