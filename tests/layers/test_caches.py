"""Sequences of several lengths go on from their own positions, whatever a cache was padded with."""

import re

import pytest
import torch

from regard import ALiBi, Causal, InputError, KindError, Lengths, Mask, Window
from regard.algebra.shapes import Tensor
from regard.layers import Attention, LearnedPositions, Mechanism, Memory, Rotary, Sinusoidal

B, H, L, D = 3, 2, 5, 8
LENGTHS = torch.tensor([5, 2, 0])


def build_layer(**changes: object) -> Attention:
    torch.manual_seed(0)
    return Attention(D, heads=H, **({"rotary": Rotary(D // H)} | changes)).double()  # type: ignore[arg-type]


def draw_sequences(length: int, seed: int = 0) -> Tensor:
    return torch.randn(B, length, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def attend_alone(attention: Attention, parts: list[Tensor]) -> Tensor:
    """Return what the last part of one sequence gets, computed in one piece, without any padding."""
    whole = torch.cat(parts)[None]
    return attention.attend_self(whole, mask=Causal())[0].output[0, -len(parts[-1]) :]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("side", ["right", "left", "none"])
def test_a_padded_cache_goes_on_as_each_sequence_alone(side: str, groups: int) -> None:
    attention = build_layer(groups=groups)
    first, second, third = draw_sequences(L), draw_sequences(2, 1), draw_sequences(1, 2)
    lengths = torch.tensor([L, L, L]) if side == "none" else LENGTHS
    cells = torch.arange(L) < lengths[:, None]
    cells = cells.flip(-1) if side == "left" else cells
    _, memory = attention.attend_self(first, mask=Causal(), real=Mask.keep_keys(cells))
    later, memory = attention.attend_self(second, before=memory, mask=Causal())
    last, _ = attention.attend_self(third, before=memory, mask=Causal())
    for one in range(B):
        kept = first[one, cells[one]]
        assert torch.allclose(later.output[one], attend_alone(attention, [kept, second[one]]), atol=1e-10)
        assert torch.allclose(last.output[one], attend_alone(attention, [kept, second[one], third[one]]), atol=1e-10)


def test_a_later_part_may_be_padded_too() -> None:
    attention = build_layer()
    first, second, third = draw_sequences(L), draw_sequences(3, 1), draw_sequences(1, 2)
    counts = torch.tensor([1, 3, 0])
    _, memory = attention.attend_self(first, mask=Causal(), real=Lengths(LENGTHS))
    _, memory = attention.attend_self(second, before=memory, mask=Causal(), real=Lengths(counts))
    last, _ = attention.attend_self(third, before=memory, mask=Causal())
    for one in range(B):
        kept = [first[one, : LENGTHS[one]], second[one, : counts[one]], third[one]]
        assert torch.allclose(last.output[one], attend_alone(attention, kept), atol=1e-10)


def test_remember_append_and_attend_say_the_same() -> None:
    attention = build_layer()
    first, second = draw_sequences(L), draw_sequences(2, 1)
    expected, _ = attention.attend_self(second, before=attention.remember(first, mask=Lengths(LENGTHS)), mask=Causal())
    memory = attention.remember(first, mask=Lengths(LENGTHS))
    assert memory.next_position.tolist() == [5, 2, 0]  # type: ignore[union-attr]
    memory = memory.append(attention.remember(second, start=memory.next_position))
    assert memory.next_position.tolist() == [7, 4, 2]  # type: ignore[union-attr]
    assert torch.allclose(attention(second, memory, mask=Causal()), expected.output, atol=1e-12)
    chosen = torch.tensor([2, 0, 2])
    picked = attention(second[chosen], memory.select(chosen), mask=Causal())
    assert torch.allclose(picked, expected.output[chosen], atol=1e-12)
    assert torch.allclose(attention(second[:2], memory.take_first(2), mask=Causal()), expected.output[:2], atol=1e-12)


def test_every_query_sits_on_its_own_key() -> None:
    attention = build_layer()
    first, second = draw_sequences(L), draw_sequences(2, 1)
    memory = attention.remember(first, mask=Lengths(LENGTHS))
    memory = memory.append(attention.remember(second, start=memory.next_position))
    whole = attention(torch.cat([first, second], dim=1), memory, mask=Causal())
    assert torch.allclose(whole[:, L:], attention(second, memory, mask=Causal()), atol=1e-12)
    real = torch.arange(L) < LENGTHS[:, None]
    assert torch.allclose(whole[:, :L][real], attention.attend_self(first, mask=Causal())[0].output[real], atol=1e-12)


def test_one_position_for_all_beside_a_padded_cache_is_refused() -> None:
    attention = build_layer()
    memory = attention.remember(draw_sequences(L), mask=Lengths(LENGTHS))
    sentence = (
        "later: got keys turned to one position for all, expected keys that go on at the positions of this memory, "
        "which is padded; fix: remember(…, start=memory.next_position)"
    )
    with pytest.raises(InputError, match=re.escape(sentence)):
        memory.append(attention.remember(draw_sequences(1), start=memory.length))
    left = Mask.keep_keys((torch.arange(L) < LENGTHS[:, None]).flip(-1) | (torch.arange(L) == L - 1))
    memory = attention.remember(draw_sequences(L), mask=left)
    memory.append(attention.remember(draw_sequences(1), start=memory.length))


def test_distances_counted_in_keys_beside_a_padded_cache_are_refused() -> None:
    attention = build_layer(rotary=None, mechanism=Mechanism(bias=ALiBi(H)))
    _, memory = attention.attend_self(draw_sequences(L), mask=Causal(), real=Lengths(LENGTHS))
    with pytest.raises(InputError, match="padding at the end of some sequences beside ALiBi"):
        attention.attend_self(draw_sequences(1), before=memory, mask=Causal())
    attention = build_layer(rotary=None)
    _, memory = attention.attend_self(draw_sequences(L), mask=Causal(), real=Lengths(LENGTHS))
    attention.attend_self(draw_sequences(1), before=memory, mask=Causal())
    with pytest.raises(InputError, match="padding at the end of some sequences beside a Window"):
        attention.attend_self(draw_sequences(1), before=memory, mask=Window(2, 0))


@pytest.mark.parametrize(
    "positions",
    [Sinusoidal(D), LearnedPositions(11, D), Rotary(D)],
    ids=lambda part: type(part).__name__,
)
def test_every_kind_of_position_starts_where_each_sequence_does(positions: Sinusoidal) -> None:
    x = draw_sequences(
        B
    ).float()  # as many vectors as sequences: a start for each could be taken for one of each vector
    start = torch.tensor([0, 7, 3])
    moved = positions(x, start=start)
    for one in range(B):
        assert torch.allclose(moved[one], positions(x[one], start=int(start[one])), atol=1e-6)
    with pytest.raises(InputError, match=r"^start: got lead axes"):
        positions(x, start=torch.tensor([0, 1]))


@pytest.mark.usefixtures("as_installed")
def test_a_start_that_is_no_position_is_refused() -> None:
    with pytest.raises(KindError, match=r"^start: got a float32 tensor of shape"):
        Rotary(D)(draw_sequences(2), start=torch.zeros(B))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^sequence: got 12 positions, expected at most 11"):
        LearnedPositions(11, D)(draw_sequences(2).float(), start=torch.tensor([0, 10, 1]))
    with pytest.raises(InputError, match=r"^start: got lead axes"):
        build_layer().remember(draw_sequences(2), start=torch.zeros(H + B, dtype=torch.long))


def test_nothing_is_written_down_where_nothing_is_padded() -> None:
    attention = build_layer()
    _, memory = attention.attend_self(draw_sequences(L), mask=Causal())
    _, memory = attention.attend_self(draw_sequences(1), before=memory, mask=Causal())
    assert memory.positions is None
    assert memory.next_position == L + 1
    assert Memory(torch.ones(2, 0, 3), torch.ones(2, 0, 3)).next_position == 0
