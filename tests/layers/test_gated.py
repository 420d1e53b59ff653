"""Gated heads with a memory."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.algebra.masks import Full, Lengths
from regard.algebra.normalizers import Sparsemax
from regard.algebra.scores import Additive
from regard.errors import InputError
from regard.layers import GatedHeads, Mechanism
from regard.layers.gated import GatedState

B, K, T, D, N, OUT, STEPS = 2, 3, 7, 5, 11, 13, 4


def build_heads(**options: object) -> GatedHeads:
    return GatedHeads(D, OUT, heads=K, hidden=N, positions=T, steps=STEPS, **options).double()  # type: ignore[arg-type]


def one_sample(layer: GatedHeads, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Compute the docstring's formulas for one sample, a head and a position at a time."""
    score = layer.mechanism.score
    assert isinstance(score, Additive)
    rows = [module.weight.view(K, N, -1) for module in (layer.inputs, layer.mean, layer.previous)]
    gate_weight, gate_bias = layer.value_gate.weight.view(K, D, D), layer.value_gate.bias.view(K, D)
    kept, said, tables = torch.zeros(K, D).double(), torch.zeros(N).double(), []
    for _ in range(STEPS):
        reads, table = [], []
        for k in range(K):
            scores = []
            for i in range(len(x)):
                inner = rows[0][k] @ x[i] + rows[1][k] @ x.mean(0) + rows[2][k] @ said + layer.offset[k, i]
                scores.append(score.weight[k] @ torch.tanh(inner) / math.sqrt(N))
            weights = torch.stack(scores).softmax(0)
            gated = [torch.sigmoid(gate_weight[k] @ row + gate_bias[k]) * row for row in x]
            reads.append(sum(w * v for w, v in zip(weights, gated, strict=True)))
            table.append(weights)
        gates = [torch.sigmoid(layer.select[k] @ torch.cat([a, said]) + layer.shift[k]) for k, a in enumerate(reads)]
        kept = torch.stack([kept[k] + gates[k] * reads[k] for k in range(K)])
        said = torch.sigmoid(layer.squash(torch.tanh(layer.update(torch.cat([kept.flatten(), said])))))
        tables.append(torch.stack(table))
    return layer.answer(said), tables


def test_glimpses_are_the_formulas() -> None:
    layer, x = build_heads(), torch.randn(B, T, D).double()
    gated = layer(x)
    assert gated.output.shape == (B, OUT)
    assert gated.weights.shape == (B, STEPS, K, T)
    assert gated.gates.shape == (B, STEPS, K)
    for b in range(B):
        output, tables = one_sample(layer, x[b])
        torch.testing.assert_close(gated.output[b], output)
        torch.testing.assert_close(gated.weights[b], torch.stack(tables))


def test_state_is_explicit() -> None:
    """Two glimpses and two more are four."""
    layer, x = build_heads(), torch.randn(B, T, D).double()
    source = layer.remember(x)
    state = layer.begin(source)
    for _ in range(2):
        state = layer.step(source, state).state
    before = {name: set(vars(module)) for name, module in layer.named_modules()}
    layer.steps = 2
    later = layer(x, state=state)
    layer.steps = 4
    torch.testing.assert_close(later.output, layer(x).output)
    torch.testing.assert_close(later.weights, layer(x).weights[:, 2:])
    assert isinstance(later.state, GatedState)
    assert {name: set(vars(module)) for name, module in layer.named_modules()} == before


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_padding_does_not_matter_and_nothing_is_nothing(poison: float) -> None:
    layer, x = build_heads(), torch.randn(B, T, D).double()
    dirty = x.clone()
    dirty[0, 4:] = dirty[1] = poison
    gated, short = layer(dirty, mask=Lengths(torch.tensor([4, 0]))), layer(x[:1, :4])
    torch.testing.assert_close(gated.output[:1], short.output)
    assert torch.equal(gated.weights[1], torch.zeros(STEPS, K, T).double())
    assert torch.equal(gated.state.memory[1], torch.zeros(K, D).double())
    gated.output.sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_gradient_reaches_every_parameter() -> None:
    layer = build_heads()
    layer(torch.randn(B, T, D).double()).output.square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_sparse_glimpses() -> None:
    layer = build_heads(mechanism=Mechanism(Additive.projected(N, heads=K), normalizer=Sparsemax()))
    weights = layer(10 * torch.randn(B, T, D).double()).weights
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, STEPS, K).double())
    assert (weights == 0).any()


def test_it_learns_to_find_the_marked_position() -> None:
    """Sixteen positions, one marked; the answer is the symbol that stands there. Loss falls to a tenth of chance."""
    symbols, length = 5, 16
    layer = GatedHeads(symbols + 1, symbols, heads=2, hidden=16, positions=length, steps=2)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    losses = []
    for _ in range(100):
        answer, place = torch.randint(symbols, (64, length)), torch.randint(length, (64, 1))
        marks = torch.zeros(64, length, 1).scatter(1, place[..., None], 1.0)
        x = torch.cat([F.one_hot(answer, symbols).float(), 4 * marks], -1)
        loss = F.cross_entropy(layer(x).output, answer.gather(1, place)[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 0.9 * math.log(symbols)
    assert sum(losses[-10:]) / 10 < 0.1 * math.log(symbols)


def test_messages() -> None:
    with pytest.raises(InputError) as caught:
        build_heads()(torch.randn(B, T + 1, D).double(), mask=Full())
    expected = "source: got 8 positions, expected at most positions=7; fix: build the layer with positions=8"
    assert str(caught.value) == expected
    with pytest.raises(InputError) as caught:
        GatedHeads(D, OUT, positions=T, steps=0)
    assert str(caught.value) == "steps: got 0, expected at least 1; fix: count the glimpses"
