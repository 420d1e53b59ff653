"""Batches: every item once, within the budget, the same whenever asked for, for any number of processes."""

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import InputError
from regard.tasks.data import filter_by_length, make_batches, pad
from regard.tasks.data.batches import find_bounds

one_side = st.lists(st.integers(1, 40), min_size=1, max_size=200)
two_sides = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=200)
lengths_of_any = one_side | two_sides
numbers = st.integers(0, 2**32)


def measure_longest(item: int | tuple[int, ...]) -> int:
    return max(item) if isinstance(item, tuple) else item


@given(lengths_of_any, st.integers(40, 300), numbers, numbers)
def test_every_item_once_and_never_over_the_budget(lengths: list[int], budget: int, seed: int, epoch: int) -> None:
    plan = make_batches(lengths, budget, seed, epoch)
    assert sorted(index for batch in plan for index in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(measure_longest(lengths[index]) for index in batch) <= budget for batch in plan)


@given(lengths_of_any, numbers, numbers, st.integers(0, 30))
def test_the_place_in_an_epoch_is_exact(lengths: list[int], seed: int, epoch: int, start: int) -> None:
    assert make_batches(lengths, 60, seed, epoch, start) == make_batches(lengths, 60, seed, epoch)[start:]


@given(lengths_of_any.filter(lambda lengths: len(lengths) > 30), st.integers(2, 5), numbers)
def test_processes_share_the_batches_of_one(lengths: list[int], world: int, seed: int) -> None:
    budget = 2 * 5 * 40
    alone = make_batches(lengths, budget, seed, 3)
    shares = [make_batches(lengths, budget, seed, 3, rank=rank, world=world) for rank in range(world)]
    for number, batch in enumerate(alone):
        parts = [share[number] for share in shares]
        assert all(parts), "every process has something to do in every batch"
        assert sorted(index for part in parts for index in part) == sorted(batch)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(st.lists(st.integers(1, 40), min_size=1, max_size=200), st.integers(40, 300), st.integers(1, 300))
def test_bounds_are_those_of_adding_one_item_after_another(lengths: list[int], budget: int, first: int) -> None:
    lengths, bounds, room = sorted(lengths), [0], max(first, min(lengths))
    for place, length in enumerate(lengths):
        if place > bounds[-1] and length * (place - bounds[-1] + 1) > room:
            bounds.append(place)
            room = budget
    found = find_bounds(numpy.array(lengths), budget, first)
    assert [*found[:-2], found[-1]] == [*bounds[:-1], len(lengths)], "only the last two share their items"
    assert found[-2] <= bounds[-1] or len(bounds) == 1


def test_epochs_and_seeds_differ_and_are_not_added_up() -> None:
    lengths = [length for length in range(1, 20) for _ in range(11)]
    plans = [make_batches(lengths, 100, seed, epoch) for seed, epoch in [(1, 0), (1, 1), (2, 0), (0, 1), (0, 2)]]
    assert all(plans[i] != plans[j] for i in range(5) for j in range(i))


def test_there_is_little_padding() -> None:
    generator = torch.Generator().manual_seed(3)
    source = (13 + 4 * torch.randn(20_000, generator=generator)).clamp(3, 40).round().long()
    target = (source + 2 * torch.randn(20_000, generator=generator)).clamp(3, 45).round().long()
    lengths = list(zip(target.tolist(), source.tolist(), strict=True))
    plan = make_batches(lengths, 4096, 1, 0)
    for side in (0, 1):
        padded = sum(len(batch) * max(lengths[index][side] for index in batch) for batch in plan)
        assert padded / sum(item[side] for item in lengths) < 1.06
    assert sum(len(batch) for batch in plan) / len(plan) > 200


def test_equal_lengths_make_equal_batches() -> None:
    plan = make_batches([1] * 31, 7, 5, 0)
    assert sorted(map(len, plan)) == [5, 5, 7, 7, 7]
    assert make_batches([1] * 31, 7, 5, 1) != plan


@pytest.mark.parametrize(
    ("lengths", "budget", "world", "message"),
    [
        ([], 10, 1, "data: got no items, expected at least one; fix: "),
        ([3, 17], 11, 1, "budget: got 11, expected at least 17, the longest item; fix: raise the budget, or "),
        ([3, 17], 40, 2, "budget: got 40, expected room for the longest item (17) in each of 2 processes; fix: "),
        ([5], 40, 2, "data: got a batch of 1, expected at least 2, one for each process; fix: "),
    ],
)
def test_what_cannot_be_cut_is_said_at_once(lengths: list[int], budget: int, world: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_batches(lengths, budget, 1, 0, world=world)
    assert str(caught.value).startswith(message)


def test_long_items_are_left_out_with_a_note() -> None:
    kept, notes = filter_by_length([3, 11, 5], 7)
    assert (kept.tolist(), notes) == ([0, 2], ["left out 1 of 3 pairs, longer than 7 tokens"])
    kept, notes = filter_by_length([(3, 2), (2, 11)], 20)
    assert (kept.tolist(), notes) == ([0, 1], [])
    with pytest.raises(InputError, match=r"^limit: got 2, expected at least 3, the shortest of the pairs; fix: "):
        filter_by_length([3, 11, 5], 2)


def test_rows_are_filled_on_the_right() -> None:
    assert pad([[5], [7, 11, 13]], filler=2).tolist() == [[5, 2, 2], [7, 11, 13]]
    assert pad([[], [3]]).tolist() == [[0], [3]]
    assert pad([]).shape == (0, 0)
