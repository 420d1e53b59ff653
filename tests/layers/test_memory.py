"""Memories grow without copies; padding that could do harm is cleaned, other padding is left where it lies."""

import pytest
import torch

from regard import Lengths, attend
from regard.layers.memory import FULL, Memory, zero_harmful_padding

B, S, D = 2, 5, 3
REAL = Lengths(torch.tensor([5, 2]))


def test_what_is_moderate_is_not_copied() -> None:
    source = torch.randn(B, S, D)
    assert zero_harmful_padding(source, REAL) is source
    assert zero_harmful_padding(source, FULL) is source


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_what_could_overflow_is_cleaned_in_the_padding_alone(value: float) -> None:
    """1e30 is finite, but the square of it in a norm is not."""
    source = torch.randn(B, S, D)
    source[1, 3] = value
    found = zero_harmful_padding(source, REAL)
    assert (found[1, 2:] == 0).all()
    assert found[0].equal(source[0])
    assert found[1, :2].equal(source[1, :2])


def make_memory(*lead: int, length: int = 1) -> Memory:
    return Memory(torch.randn(*lead, length, 3), torch.randn(*lead, length, 5))


@torch.no_grad()
def test_appending_step_by_step_gives_what_joining_gives_and_copies_rarely() -> None:
    steps = [make_memory(2, length=1 + n % 2) for n in range(40)]
    grown, places = steps[0], set()
    for step in steps[1:]:
        grown = grown.append(step)
        places.add(grown.key.data_ptr())
    assert torch.equal(grown.key, torch.cat([step.key for step in steps], -2))
    assert torch.equal(grown.value, torch.cat([step.value for step in steps], -2))
    assert len(places) <= 4


@torch.no_grad()
def test_two_ways_to_go_on_from_one_memory_do_not_disturb_each_other() -> None:
    start = make_memory(2).append(make_memory(2))
    left, right = make_memory(2), make_memory(2)
    one, other = start.append(left), start.append(right)
    assert torch.equal(one.key[:, 2:], left.key)
    assert torch.equal(other.key[:, 2:], right.key)
    assert torch.equal(one.append(right).add_to_keys(torch.ones(4, 3)).append(left).key[:, 4:], left.key)


def test_weights_of_an_earlier_step_are_fresh_after_later_ones() -> None:
    with torch.no_grad():
        memory = make_memory(2).append(make_memory(2))
        seen = attend(torch.randn(2, 1, 3), memory.key, memory.value).weights
        before = seen.dense().clone()
        memory.append(make_memory(2))
        assert torch.equal(seen.dense(), before)


def test_a_memory_grows_across_modes() -> None:
    with torch.inference_mode():
        memory = make_memory(2).append(make_memory(2))
    with torch.no_grad():
        memory = memory.append(make_memory(2))
    later = make_memory(2)
    later.key.requires_grad_()
    (gradient,) = torch.autograd.grad(memory.append(later).key.sum(), later.key)
    assert torch.equal(gradient, torch.ones_like(gradient))
