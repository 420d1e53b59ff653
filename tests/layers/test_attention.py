"""Multi-head attention over an explicit memory, with any mechanism."""

import pytest
import torch
from torch import Tensor, nn

from regard.algebra import catalog
from regard.algebra.aggregates import Argmax, Sample
from regard.algebra.biases import ALiBi, Relative
from regard.algebra.catalog import Sizes
from regard.algebra.masks import Causal, Full, Lengths, Mask
from regard.algebra.normalizers import Normalizer, Softmax, Sparsemax
from regard.algebra.scores import Additive, Bilinear, Dot, Gaussian, ScaledDot
from regard.compute.attend import attend
from regard.errors import InputError
from regard.layers import Attention, LocalAttention, Mechanism, Memory, PackedProjections, Projections, Rotary

B, H, L, S, D = 2, 3, 5, 7, 11
SIZE, SOURCE = H * D, 13


def double(layer: nn.Module) -> nn.Module:
    return layer.double()


def split_heads(sequence: Tensor, heads: int) -> list[Tensor]:
    return list(sequence.chunk(heads, dim=-1))


@pytest.mark.parametrize("name", catalog.SCORES)
def test_a_layer_is_its_mechanism_for_each_head(name: str) -> None:
    """The definition: project, cut into heads, attend head by head, put side by side, project."""
    score = catalog.SCORES[name](Sizes(D, D, D, keys=S))
    layer = Attention(SIZE, heads=H, source=SOURCE, mechanism=Mechanism(score)).double()
    parts = layer.projections
    assert isinstance(parts, Projections)
    query, source = torch.randn(B, L, SIZE).double(), torch.randn(B, S, SOURCE).double()
    mask = Causal()
    rows = zip(*(split_heads(p, H) for p in (parts.query(query), parts.key(source), parts.value(source))), strict=True)
    eager = [attend(q, k, v, score=score, mask=mask, backend="eager").output for q, k, v in rows]
    expected = parts.output(torch.cat(eager, dim=-1))
    torch.testing.assert_close(layer(query, layer.remember(source), mask=mask), expected)


@pytest.mark.parametrize("name", catalog.NORMALIZERS)
@pytest.mark.parametrize("bias", ["alibi", "relative", "none"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_every_normalizer_and_bias_runs_grouped(name: str, bias: str, groups: int) -> None:
    sizes = Sizes(D, D, D, lead=(B, 4), queries=L, keys=S)
    mechanism = Mechanism(bias=catalog.BIASES[bias](sizes), normalizer=catalog.NORMALIZERS[name](sizes))
    layer = Attention(4 * D, heads=4, groups=groups, mechanism=mechanism)
    query, source = torch.randn(B, L, 4 * D), torch.randn(B, S, 4 * D)
    attended = layer.attend(query, layer.remember(source, mask=Lengths(torch.tensor([S, 0]))))
    assert attended.output.shape == (B, L, 4 * D)
    assert attended.weights.shape == (B, 4, L, S)
    assert torch.equal(attended.output[1], layer.projections.merge(torch.zeros(4, L, D)))
    attended.output.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("bias", [None, ALiBi(4)])
@pytest.mark.parametrize("normalizer", [Softmax(), Sparsemax()])
def test_grouped_heads_are_repeated_heads(normalizer: Normalizer, bias: ALiBi | None, groups: int) -> None:
    """Without a term for each head nothing is copied, with one keys are: the numbers are the same."""
    mechanism = Mechanism(bias=bias, normalizer=normalizer)
    grouped = Attention(4 * D, heads=4, groups=groups, mechanism=mechanism).double()
    whole = Attention(4 * D, heads=4, mechanism=mechanism).double()
    small, large = grouped.projections, whole.projections
    assert isinstance(small, PackedProjections)
    assert isinstance(large, PackedProjections)
    with torch.no_grad():
        query, key, value = small.input.weight.split(small.widths)
        repeated = [p.view(groups, D, -1).repeat_interleave(4 // groups, 0).flatten(0, 1) for p in (key, value)]
        large.input.weight.copy_(torch.cat([query, *repeated]))
        large.output.load_state_dict(small.output.state_dict())
    x = torch.randn(B, L, 4 * D).double()
    real = Lengths(torch.tensor([L, 2]))
    own, other = (layer.attend(x, layer.remember(x, mask=real), mask=Causal()) for layer in (grouped, whole))
    torch.testing.assert_close(own.output, other.output)
    torch.testing.assert_close(own.weights.dense(), other.weights.dense())
    rows, columns = slice(1, 4), slice(0, 3)
    torch.testing.assert_close(own.weights.tile(rows, columns), other.weights.tile(rows, columns))
    torch.testing.assert_close(own.weights.summary(2), other.weights.summary(2))
    assert own.weights.shape == (B, 4, L, L)
    assert grouped.remember(x).key.shape == (B, groups, L, D)


def test_grouped_heads_draw() -> None:
    layer = Attention(4 * D, heads=4, groups=2, mechanism=Mechanism(aggregate=Sample()))
    x = torch.randn(B, L, 4 * D)
    log_prob = layer.attend(x, layer.remember(x)).log_prob
    assert log_prob is not None
    assert log_prob.shape == (B, 4, L)


@pytest.mark.parametrize("rotary", [None, Rotary(10)])
@pytest.mark.parametrize("packed", [True, False])
def test_within_is_remember_and_attend(packed: bool, rotary: Rotary | None) -> None:
    size = 10 * H
    layer = Attention(size, heads=H, rotary=rotary) if packed else Attention(size, heads=H, source=size, rotary=rotary)
    layer.double()
    x, real = torch.randn(B, L, size).double(), Lengths(torch.tensor([L, 2]))
    attended, memory = layer.attend_self(x, mask=Causal(), real=real)
    expected = layer(x, layer.remember(x, mask=real), mask=Causal())
    torch.testing.assert_close(attended.output[0], expected[0])
    torch.testing.assert_close(attended.output[1, :2], expected[1, :2])
    torch.testing.assert_close(memory.key, layer.remember(x, mask=real).key)


@pytest.mark.parametrize("rotary", [None, Rotary(10)])
@pytest.mark.parametrize("groups", [1, H])
@pytest.mark.parametrize("score", [ScaledDot, Gaussian, lambda: Additive.projected(10, heads=H)])
def test_stepping_is_teacher_forcing(score: type, groups: int, rotary: Rotary | None) -> None:
    layer = Attention(10 * H, heads=H, groups=groups, mechanism=Mechanism(score()), rotary=rotary).double()
    x = torch.randn(B, L, 10 * H).double()
    whole = layer(x, layer.remember(x), mask=Causal())
    memory, steps = layer.remember(x[:, :1]), []
    for t in range(L):
        if t:
            memory = memory.append(layer.remember(x[:, t : t + 1], start=t))
        steps.append(layer(x[:, t : t + 1], memory, mask=Causal()))
    torch.testing.assert_close(torch.cat(steps, 1), whole)
    halves = layer.attend_self(x[:, :2], mask=Causal())
    later, _ = layer.attend_self(x[:, 2:], before=halves[1], mask=Causal())
    torch.testing.assert_close(torch.cat([halves[0].output, later.output], 1), whole)


def test_one_two_or_three_sequences_are_self_cross_and_key_value_attention() -> None:
    layer = Attention(SIZE, heads=H)
    x, y, z = torch.randn(B, L, SIZE), torch.randn(B, S, SIZE), torch.randn(B, S, SIZE)
    torch.testing.assert_close(layer(x), layer(x, layer.remember(x)))
    torch.testing.assert_close(layer(x, mask=Causal()), layer.attend_self(x, mask=Causal())[0].output)
    torch.testing.assert_close(layer(x, y), layer(x, layer.remember(y)))
    torch.testing.assert_close(layer(x, y, z), layer(x, layer.remember(y, z)))
    assert layer.attend(x, y).weights.dense().shape == (B, H, L, S)


def test_a_content_needs_a_source_that_is_no_memory() -> None:
    layer, x = Attention(SIZE, heads=H), torch.randn(B, L, SIZE)
    sentence = (
        r"^content: got a float32 tensor .*, expected a tensor, the source .*; fix: write layer\(query, key, value\)$"
    )
    for source in (layer.remember(x), None):
        with pytest.raises(InputError, match=sentence):
            layer(x, source, x)


def test_padding_does_not_matter() -> None:
    layer = Attention(SIZE, heads=H, source=SOURCE).double()
    query, source = torch.randn(B, L, SIZE).double(), torch.randn(B, S, SOURCE).double()
    short = layer(query, layer.remember(source[:, :3]))
    torch.testing.assert_close(layer(query, layer.remember(source, mask=Lengths(torch.tensor([3, 3])))), short)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
def test_a_poisoned_padding_never_leaks(poison: float) -> None:
    layer = Attention(SIZE, heads=H, source=SOURCE)
    query, source = torch.randn(B, L, SIZE), torch.randn(B, S, SOURCE)
    mask = Lengths(torch.tensor([3, 0]))
    clean = layer(query, layer.remember(source, mask=mask))
    clean.sum().backward()
    expected = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
    layer.zero_grad()
    source[0, 3:] = source[1] = poison
    dirty = layer(query, layer.remember(source, mask=mask))
    dirty.sum().backward()
    assert torch.equal(dirty, clean)
    assert all(torch.equal(p.grad, e) for p, e in zip(layer.parameters(), expected, strict=True))


def test_all_keys_padded_is_not_nan_as_in_torch_multihead_attention() -> None:
    """nn.MultiheadAttention gives NaN to a sample whose keys are all padded, in three of its four modes."""
    torch_layer = nn.MultiheadAttention(SIZE, H, batch_first=True)
    x, padded = torch.randn(B, L, SIZE), torch.tensor([[False] * L, [True] * L])
    assert torch_layer(x, x, x, key_padding_mask=padded)[0][1].isnan().all()
    layer = Attention.from_torch(torch_layer)
    attended = layer.attend(x, layer.remember(x, mask=Mask.drop(padded[:, None])))
    torch.testing.assert_close(attended.output[0], torch_layer(x, x, x, key_padding_mask=padded)[0][0])
    assert torch.equal(attended.weights.dense()[1], torch.zeros(H, L, L))
    assert torch.equal(attended.output[1], layer.projections.merge(torch.zeros(H, L, D)))


def test_bahdanau_is_parts() -> None:
    """Additive score, a matrix for query and key, values as they are: the projected keys are the memory."""
    hidden = 17
    parts = Projections(query=nn.Linear(SIZE, hidden, bias=False), key=nn.Linear(SOURCE, hidden)).double()
    score = Additive.projected(hidden).double()
    layer = Attention(parts, mechanism=Mechanism(score))
    query, source = torch.randn(B, L, SIZE).double(), torch.randn(B, S, SOURCE).double()
    hidden_layer = torch.tanh(parts.query(query)[:, :, None] + parts.key(source)[:, None])
    weights = (hidden_layer @ score.weight).softmax(-1)
    attended = layer.attend(query, layer.remember(source))
    torch.testing.assert_close(attended.output, weights @ source)
    torch.testing.assert_close(attended.weights.dense()[:, 0], weights)


def test_luong_dot_and_general_need_no_projection() -> None:
    query, source = torch.randn(B, L, SOURCE).double(), torch.randn(B, S, SOURCE).double()
    dot = Attention(Projections(), mechanism=Mechanism(Dot()))
    torch.testing.assert_close(dot(query, dot.remember(source)), (query @ source.transpose(1, 2)).softmax(-1) @ source)
    general = Attention(Projections(), mechanism=Mechanism(Bilinear(SOURCE, SOURCE))).double()
    matrix = general.mechanism.score.weight
    expected = (query @ matrix @ source.transpose(1, 2)).softmax(-1) @ source
    torch.testing.assert_close(general(query, general.remember(source)), expected)


def test_widths_of_key_and_value_may_differ() -> None:
    parts = Projections.linear(SIZE, heads=H, source=SOURCE, content=17, widths=(5, 19), bias=False)
    layer = Attention(parts)
    memory = layer.remember(torch.randn(B, S, SOURCE), torch.randn(B, S, 17))
    assert (memory.key.shape, memory.value.shape) == ((B, H, S, 5), (B, H, S, 19))
    assert layer(torch.randn(B, L, SIZE), memory).shape == (B, L, SIZE)


def test_a_packed_layer_takes_values_from_elsewhere_too() -> None:
    layer = Attention(SIZE, heads=H).double()
    source, content = torch.randn(2, B, S, SIZE).double()
    memory = layer.remember(source, content)
    torch.testing.assert_close(memory.key, layer.remember(source).key)
    torch.testing.assert_close(memory.value, layer.remember(content).value)


def test_a_beam_selects_its_memory() -> None:
    layer = Attention(SIZE, heads=H, source=SOURCE).double()
    query, source = torch.randn(B, 1, SIZE).double(), torch.randn(B, S, SOURCE).double()
    index = torch.tensor([1, 1, 0])
    for mask in (Full(), Lengths(torch.tensor([3, 5])), Lengths(torch.tensor(4))):
        memory = layer.remember(source, mask=mask)
        torch.testing.assert_close(layer(query[index], memory.select(index)), layer(query, memory)[index])


def test_appending_keeps_the_padding_of_both() -> None:
    layer = Attention(SIZE, heads=H, source=SOURCE).double()
    query, source = torch.randn(B, L, SIZE).double(), torch.randn(B, S, SOURCE).double()
    first = layer.remember(source[:, :3], mask=Lengths(torch.tensor([3, 1])))
    both = first.append(layer.remember(source[:, 3:], mask=Lengths(torch.tensor([2, 4]))))
    real = torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1, 0, 0, 1, 1, 1, 1]]).bool()
    expected = layer(query, layer.remember(source, mask=Mask.keep(real[:, None])))
    torch.testing.assert_close(layer(query, both), expected)
    grown = first.append(layer.remember(source[:, 3:]))
    assert grown.mask.table(1, S).squeeze(1).sum(-1).tolist() == [7, 5]


def test_dropout_rests_in_evaluation() -> None:
    layer = Attention(SIZE, heads=H, dropout=0.5)
    x = torch.randn(B, L, SIZE)
    assert not torch.equal(layer(x, layer.remember(x)), layer(x, layer.remember(x)))
    layer.eval()
    assert torch.equal(layer(x, layer.remember(x)), layer(x, layer.remember(x)))


def test_a_call_may_replace_the_mechanism() -> None:
    layer = Attention(SIZE, heads=H, mechanism=Mechanism(Gaussian(), aggregate=Sample()))
    x = torch.randn(B, L, SIZE)
    memory = layer.remember(x)
    log_prob = layer.attend(x, memory).log_prob
    assert log_prob is not None
    assert log_prob.shape == (B, H, L)
    other = layer.mechanism.replace(normalizer=Sparsemax(), aggregate=Argmax())
    assert other.score is layer.mechanism.score
    assert layer.attend(x, memory, mechanism=other).log_prob is None


def test_gradient_reaches_every_parameter() -> None:
    mechanism = Mechanism(Additive.projected(D, heads=H), bias=Relative(H))
    layer = Attention(SIZE, heads=H, source=SOURCE, mechanism=mechanism)
    layer(torch.randn(B, L, SIZE), layer.remember(torch.randn(B, S, SOURCE))).square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_nothing_survives_a_call() -> None:
    layer = Attention(SIZE, heads=H)
    before = {name: set(vars(module)) for name, module in layer.named_modules()}
    x = torch.randn(B, L, SIZE)
    layer(x, layer.remember(x), mask=Causal())
    layer.attend_self(x)
    assert {name: set(vars(module)) for name, module in layer.named_modules()} == before
    assert set(layer.state_dict()) == {
        "projections.input.weight",
        "projections.input.bias",
        "projections.output.weight",
        "projections.output.bias",
    }


def test_messages() -> None:
    def read_message(kind: type[Exception], call: object, *args: object, **named: object) -> str:
        with pytest.raises(kind) as caught:
            call(*args, **named)  # type: ignore[operator]
        return str(caught.value)

    expected = "heads: got 3, expected a divisor of size=64; fix: use one of 1, 2, 4, 8, 16, 32, 64"
    assert read_message(InputError, Attention, 64, heads=3) == expected
    assert read_message(InputError, Attention, 64, heads=3, source=5) == expected
    expected = "groups: got 3, expected a divisor of heads=4; fix: use one of 1, 2, 4"
    assert read_message(InputError, Attention, 64, heads=4, groups=3) == expected
    expected = "heads: got 2, expected none beside built projections; fix: give it to the projections"
    assert read_message(InputError, Attention, Projections(), heads=2) == expected
    layer, x = Attention(SIZE, heads=H), torch.randn(B, L, SIZE)
    expected = "memory.mask: got Causal, expected a mask that is the same for every query; fix: give it with the query"
    assert read_message(InputError, layer.remember, x, mask=Causal()) == expected
    expected = "projection: got width 7, expected a multiple of heads=2; fix: project to a multiple of the heads"
    assert read_message(InputError, Projections(heads=2).project_queries, torch.ones(L, 7)) == expected


@pytest.mark.usefixtures("as_installed")
def test_one_query_for_each_sequence_does_not_pass_for_queries_of_all() -> None:
    layer, source = Attention(SIZE, heads=H), torch.randn(B, L, SIZE)
    local = LocalAttention(layer, radius=2, size=SIZE)
    memory, sentence = layer.remember(source), r"expected an axis of queries.*fix: write query\.unsqueeze\(-2\) if each"
    for attention, keys in ((layer, source), (layer, memory), (local, memory)):
        with pytest.raises(InputError, match=sentence):
            attention(torch.randn(B, SIZE), keys)
    assert layer(torch.randn(B + 1, SIZE), source).shape == (B, B + 1, SIZE)  # shared by all


def test_a_memory_may_be_made_by_hand() -> None:
    layer = Attention(Projections(heads=H))
    memory = Memory(torch.randn(B, H, S, D), torch.randn(B, H, S, 13))
    assert layer(torch.randn(B, L, SIZE), memory).shape == (B, L, H * 13)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_stays_half(kind: torch.dtype) -> None:
    layer = Attention(10 * H, heads=H, rotary=Rotary(10)).to(kind)
    x = torch.randn(B, L, 10 * H).to(kind)
    out = layer(x, layer.remember(x, mask=Lengths(torch.tensor([L, 0]))))
    assert out.dtype == kind
    assert out.isfinite().all()


def test_lead_axes_are_free() -> None:
    layer = Attention(SIZE, heads=H).double()
    x = torch.randn(2, 3, L, SIZE).double()
    torch.testing.assert_close(layer(x, layer.remember(x))[1, 2], layer(x[1, 2], layer.remember(x[1, 2])))
