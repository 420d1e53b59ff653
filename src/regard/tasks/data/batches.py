"""Batches of like lengths within a budget of tokens, or of one size, the same whenever they are asked for."""

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import NamedTuple, TypeVar

import numpy
import torch

from regard.algebra.shapes import Int, Tensor
from regard.errors import InputError, wrong
from regard.training import DataShare

Row = TypeVar("Row", bound=Sized)
Result = TypeVar("Result")
Lengths = Sequence[int] | Sequence[tuple[int, ...]]


def make_batches(
    lengths: Lengths, budget: int, seed: int, epoch: int, start: int = 0, rank: int = 0, world: int = 1
) -> list[list[int]]:
    """Return the items of an epoch in batches, from batch `start` on, for process `rank`.

    A batch has at most `budget` tokens with its padding: rows × the longest in it. With several lengths an item
    (target, source) the longest of any side counts, and all sides are alike within a batch. The batches depend on
    `seed` and `epoch` alone; each process has every `world`-th row of every one of them, so the place in an epoch
    means the same for any number of processes.
    """
    if not lengths:
        raise wrong("data", "no items", "at least one", "check the data, or raise the limit on lengths")
    table = numpy.array(lengths, dtype=numpy.int64).reshape(len(lengths), -1)
    check_budget(table, budget, world)
    # Two words, because seeds and epochs that are added up would meet.
    random = numpy.random.default_rng([seed, epoch])
    groups = cut_groups(
        sort_by_length(table, random), table.max(axis=1), budget, draw_first_budget(table, budget, random)
    )
    if min(map(len, groups)) < world:
        raise too_few_rows_error(min(map(len, groups)), world, "more data")
    order = random.permutation(len(groups))[start:]
    return [groups[index][rank::world] for index in order]


def check_budget(table: numpy.ndarray, budget: int, world: int) -> None:
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


def sort_by_length(table: numpy.ndarray, random: numpy.random.Generator) -> list[int]:
    """Return the items by their longest side, then by how the sides differ, equals in random order.

    The difference goes up and down in turns, so that it does not jump when the length grows. On 29,000 pairs of
    Multi30k and 4,096 tokens this leaves 2.9 % of padding; sorted by target and then source, 4.2 %.
    """
    longest, difference = table.max(axis=1), table[:, 0] - table[:, -1]
    turning = numpy.where(longest % 2 == 0, difference, -difference)
    return [int(index) for index in numpy.lexsort((random.random(len(table)), turning, longest))]


def draw_first_budget(table: numpy.ndarray, budget: int, random: numpy.random.Generator) -> int:
    """Return a smaller budget for the first batch, which shifts all others: rare lengths meet new ones each epoch."""
    return budget if table.max() == table.min() else int(random.integers(budget // 2, budget + 1))


def cut_groups(order: list[int], longest: numpy.ndarray, budget: int, first: int) -> list[list[int]]:
    """Return groups of neighbors, each as large as the budget allows; the last two share their items evenly."""
    groups: list[list[int]] = [[]]
    length, room = 0, max(first, int(longest[order[0]]))
    for index in order:
        length = max(length, int(longest[index]))
        if groups[-1] and length * (len(groups[-1]) + 1) > room:
            groups.append([])
            length, room = int(longest[index]), budget
        groups[-1].append(index)
    if len(groups) > 1:
        even_out(groups[-2], groups[-1], longest, budget)
    return groups


def even_out(before: list[int], last: list[int], longest: numpy.ndarray, budget: int) -> None:
    """Move items to the last batch, which may be tiny, while they fit."""
    length = int(longest[last].max())
    while len(before) > len(last) + 1:
        length = max(length, int(longest[before[-1]]))
        if length * (len(last) + 1) > budget:
            return
        last.insert(0, before.pop())


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
) -> tuple[list[int], list[str]]:
    """Return the indices of the items no longer than `limit`, and a note on the others."""
    longest = [max(item) if isinstance(item, tuple) else item for item in lengths]
    kept = [index for index, length in enumerate(longest) if length <= limit]
    if not kept and longest:
        fix = f"raise the limit to {min(longest)} or more"
        raise wrong("limit", limit, f"at least {min(longest)}, the shortest of the {what}", fix)
    dropped = len(longest) - len(kept)
    note = f"left out {dropped} of {len(longest)} {what}, longer than {limit} {unit}"
    return kept, [note] if dropped else []


def pad(rows: Sequence[Sequence[int]], filler: int = 0) -> Tensor:
    """Return rows of token ids as one tensor, padded on the right.

    >>> pad([[5, 6, 7], [8]])
    tensor([[5, 6, 7],
            [8, 0, 0]])
    """
    width = max(map(len, rows), default=0)
    table = numpy.full((len(rows), width), filler, dtype=numpy.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return torch.from_numpy(table)


class PaddedRows(NamedTuple):
    """Rows of token ids as one tensor, padded on the right, and their lengths."""

    ids: Int[Tensor, "row longest"]
    lengths: Int[Tensor, " row"]

    def to(self, device: torch.device) -> "PaddedRows":
        """Return the same on a device."""
        return self._replace(ids=self.ids.to(device), lengths=self.lengths.to(device))


def pad_rows(rows: Sequence[Sequence[int]]) -> PaddedRows:
    """Return rows of token ids as one tensor, and their lengths."""
    return PaddedRows(pad(rows), torch.tensor([len(row) for row in rows]))
