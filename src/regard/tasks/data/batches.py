"""Batches of like lengths within a budget of tokens, or of one size, the same whenever they are asked for."""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import NamedTuple, TypeVar

import numpy
import torch

from regard.algebra.shapes import Int, Tensor
from regard.errors import InputError, wrong
from regard.tasks.data.rows import Array, tabulate_lengths
from regard.training import DataShare
from regard.training.task import LazySequence

Row = TypeVar("Row", bound=Sized)
Result = TypeVar("Result")
Lengths = Sequence[int] | Sequence[tuple[int, ...]] | Array


class BatchPlan(LazySequence[Sequence[int]]):
    """The batches of an epoch, which are cut when they are asked for: millions of lists would not fit in memory.

    Batch i has the items of `order` from `bounds[turns[i]]` on, of which this process takes its share.
    """

    def __init__(self, order: Array, bounds: Array, turns: Array, part: DataShare) -> None:
        self.order, self.bounds, self.turns, self.part = order, bounds, turns, part

    def __len__(self) -> int:
        return len(self.turns)

    def select(self, chosen: slice) -> "BatchPlan":
        return BatchPlan(self.order, self.bounds, self.turns[chosen], self.part)

    def make(self, index: int) -> Sequence[int]:
        group = self.turns[index]
        return self.part.select(self.order[self.bounds[group] : self.bounds[group + 1]].tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchPlan) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def make_batches(
    lengths: Lengths, budget: int, seed: int, epoch: int, start: int = 0, rank: int = 0, world: int = 1
) -> BatchPlan:
    """Return the items of an epoch in batches, from batch `start` on, for process `rank`.

    A batch has at most `budget` tokens with its padding: rows × the longest in it. With several lengths an item
    (target, source) the longest of any side counts, and all sides are alike within a batch. The batches depend on
    `seed` and `epoch` alone; each process has every `world`-th row of every one of them, so the place in an epoch
    means the same for any number of processes.
    """
    table = tabulate_lengths(lengths)
    if not len(table):
        raise wrong("data", "no items", "at least one", "check the data, or raise the limit on lengths")
    check_budget(table, budget, world)
    # Two words, because seeds and epochs that are added up would meet.
    random = numpy.random.default_rng([seed, epoch])
    order = sort_by_length(table, random)
    longest = table.max(axis=1)[order]
    bounds = numpy.array(find_bounds(longest, budget, draw_first_budget(table, budget, random)))
    fewest = int(numpy.diff(bounds).min())
    if fewest < world:
        raise too_few_rows_error(fewest, world, "more data")
    return BatchPlan(order, bounds, random.permutation(len(bounds) - 1)[start:], DataShare(rank, world))


def check_budget(table: Array, budget: int, world: int) -> None:
    """Raise if some epoch could not be split into batches: now, rather than in the middle of a run."""
    longest = int(table.max())
    if longest > budget:
        fix = f"raise the budget, or leave out what is longer than {budget}"
        raise wrong("budget", budget, f"at least {longest}, the longest item", fix)
    least = world * longest * (2 if world > 1 and table.max() > table.min() else 1)
    if budget < least:
        fix = f"raise the budget to {least}, or use fewer processes"
        raise wrong("budget", budget, f"room for the longest item ({longest}) in each of {world} processes", fix)


def too_few_rows_error(rows: int, world: int, remedy: str) -> InputError:
    """Return the error for a batch that has fewer rows than there are processes."""
    fix = f"use fewer processes, or {remedy}"
    return wrong("data", f"a batch of {rows}", f"at least {world}, one for each process", fix)


def sort_by_length(table: Array, random: numpy.random.Generator) -> Array:
    """Return the items by their longest side, then by how the sides differ, equals in random order.

    The difference goes up and down in turns, so that it does not jump when the length grows. On 29,000 pairs of
    Multi30k and 4,096 tokens this leaves 2.9 % of padding; sorted by target and then source, 4.2 %.
    """
    longest, difference = table.max(axis=1), table[:, 0] - table[:, -1]
    turning = numpy.where(longest % 2 == 0, difference, -difference)
    return numpy.lexsort((random.random(len(table)), turning, longest))


def draw_first_budget(table: Array, budget: int, random: numpy.random.Generator) -> int:
    """Return a smaller budget for the first batch, which shifts all others: rare lengths meet new ones each epoch."""
    return budget if table.max() == table.min() else int(random.integers(budget // 2, budget + 1))


def find_bounds(lengths: Array, budget: int, first: int) -> list[int]:
    """Return where groups of neighbors begin and end, each as large as the budget allows; `lengths` ascend.

    The last two groups share their items evenly: otherwise the last might be tiny.

    >>> find_bounds(numpy.array([1, 1, 1, 2, 2, 3]), budget=4, first=2)
    [0, 2, 4, 5, 6]
    """
    bounds, room = [0], max(first, int(lengths[0]))
    while bounds[-1] < len(lengths):
        start = bounds[-1]
        near = lengths[start : start + max(1, room // max(1, int(lengths[start])))]
        fitting = int(numpy.sum(near * numpy.arange(1, len(near) + 1) <= room))
        bounds.append(start + max(1, fitting))
        room = budget
    while len(bounds) > 2:
        before, last, end = bounds[-3:]
        if last - before <= end - last + 1 or int(lengths[-1]) * (end - last + 1) > budget:
            break
        bounds[-2] -= 1
    return bounds


def shuffle_batches(items: int, batch: int, seed: int, epoch: int, part: DataShare) -> list[list[int]]:
    """Return the items of an epoch in batches of about `batch`, for one process.

    All batches are of about one size; every process has a row of each.

    >>> shuffle_batches(5, 2, seed=1, epoch=0, part=DataShare())
    [[4, 0, 1], [2, 3]]
    """
    if items < 1:
        raise wrong("data", "no items", "at least one", "check the data")
    order = numpy.random.default_rng([seed, epoch]).permutation(items)
    groups = [group.tolist() for group in numpy.array_split(order, max(1, round(items / batch)))]
    if min(map(len, groups)) < part.world:
        raise too_few_rows_error(min(map(len, groups)), part.world, "larger batches")
    return [list(part.select(group)) for group in groups]


def group_by_length(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Return the indices of all items, the longest first, in groups of at most `budget` tokens with their padding."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = lengths[groups[-1][0]] if groups else 0
        if not groups or longest * (len(groups[-1]) + 1) > budget:
            groups.append([])
        groups[-1].append(index)
    return groups


def map_by_length(items: Sequence[Row], budget: int, compute: Callable[[list[Row]], Iterable[Result]]) -> list[Result]:
    """Return what `compute` returns for all items, in their order; it is given those of like length together.

    >>> map_by_length(["aaa", "b", "cc"], 3, lambda some: [f"{one} of {len(some)}" for one in some])
    ['aaa of 1', 'b of 1', 'cc of 1']
    """
    found: dict[int, Result] = {}
    for chosen in group_by_length([len(item) for item in items], budget):
        found |= zip(chosen, compute([items[index] for index in chosen]), strict=True)
    return [found[index] for index in range(len(items))]


def filter_by_length(
    lengths: Lengths, limit: int, what: str = "pairs", unit: str = "tokens"
) -> tuple[Array, list[str]]:
    """Return the indices of the items no longer than `limit`, and a note on the others."""
    longest = tabulate_lengths(lengths).max(axis=1)
    kept = numpy.flatnonzero(longest <= limit)
    if not len(kept) and len(longest):
        shortest = int(longest.min())
        expected, fix = f"at least {shortest}, the shortest of the {what}", f"raise the limit to {shortest} or more"
        raise wrong("limit", limit, expected, fix)
    dropped = len(longest) - len(kept)
    note = f"left out {dropped} of {len(longest)} {what}, longer than {limit} {unit}"
    return kept, [note] if dropped else []


def pad(rows: Sequence[Sequence[int] | Array], filler: int = 0, begin: int | None = None) -> Tensor:
    """Return rows of token ids as one tensor, padded on the right, each behind `begin` if that is given.

    >>> pad([[5, 6, 7], [8]]), pad([[5], []], begin=2)
    (tensor([[5, 6, 7],
            [8, 0, 0]]), tensor([[2, 5],
            [2, 0]]))
    """
    first = 0 if begin is None else 1
    width = first + max(map(len, rows), default=0)
    table = numpy.full((len(rows), width), filler, dtype=numpy.int64)
    table[:, :first] = begin or 0
    for place, row in enumerate(rows):
        table[place, first : first + len(row)] = row
    return torch.from_numpy(table)


class PaddedRows(NamedTuple):
    """Rows of token ids as one tensor, padded on the right, and their lengths."""

    ids: Int[Tensor, "row longest"]
    lengths: Int[Tensor, " row"]

    def to(self, device: torch.device) -> "PaddedRows":
        """Return the same on a device."""
        return self._replace(ids=self.ids.to(device), lengths=self.lengths.to(device))


def pad_rows(rows: Sequence[Sequence[int] | Array], begin: int | None = None) -> PaddedRows:
    """Return rows of token ids as one tensor, each behind `begin` if that is given, and their lengths."""
    first = 0 if begin is None else 1
    return PaddedRows(pad(rows, begin=begin), torch.tensor([first + len(row) for row in rows]))
