"""Parts of a corpus that have no sentence in common, on either side."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy

from regard.errors import wrong
from regard.tasks.data.groups import Groups, group_equal
from regard.tasks.data.pair_rows import PairHashes, collect_pairs, hash_bytes
from regard.tasks.data.pairs import Corpus, SentencePair
from regard.tasks.data.rows import Array

HELD_OUT = 0.02  # of the pairs, for validation and for the test each
SMALL_HELD_OUT = 0.1  # of few pairs, up to ENOUGH of them: two in a hundred would measure nothing
ENOUGH = 50
LEAST = 3
BLOCK = 2**16  # groups that are hashed at once


class CorpusSplit(NamedTuple):
    """The numbers of the pairs that are trained on, that validate and that test, and notes on them."""

    train: Array
    validation: Array
    test: Array
    notes: tuple[str, ...] = ()


def split_corpus(pairs: Sequence[SentencePair], share: float | None = None) -> Corpus:
    """Split one list of pairs into training, validation and test, as `split_pairs` does."""
    rows, hashes = collect_pairs(pairs)
    split = split_pairs(hashes, share)
    train, validation, test = map(rows.select, split[:3])
    return Corpus(train, validation, {"test": test}, split.notes, cut=True)


def split_pairs(hashes: PairHashes, share: float | None = None) -> CorpusSplit:
    """Split pairs into training, validation and test, by their hashes.

    Pairs that share a sentence, or one that differs only in case and punctuation, stay together: a test sentence
    whose other translation was trained on would not test anything. The part that a group goes to depends on its own
    text alone, not on the order of the file, and not on its size unless it is larger than what is wanted: such a group
    is trained on. Added lines move a group only if they join it, or if it was among the last that a part had room for.
    """
    groups = group_equal([hashes.sources, hashes.targets])
    count, sizes = len(hashes.pairs), groups.sizes
    check_enough(len(sizes), "to train on, validate and test")
    order = numpy.argsort(hash_groups(hashes.pairs, groups), kind="stable").astype(numpy.uint32)
    wanted = compute_split_size(sizes, compute_share(count) if share is None else share * count)
    held_out = []
    for parts_to_come in (2, 1):
        chosen = fill_split(sizes[order], wanted, leave=parts_to_come)
        held_out.append(groups.list_members(order[chosen].tolist()))
        order = numpy.delete(order, chosen)
    trained = numpy.ones(count, dtype=bool)
    trained[numpy.concatenate(held_out)] = False
    largest = int(sizes.max())
    note = f"{largest:,} of the {count:,} pairs are joined by sentences they share: trained on"
    notes = (note,) if largest > wanted and largest > 1 else ()
    return CorpusSplit(numpy.flatnonzero(trained), held_out[0], held_out[1], notes)


def compute_share(pairs: int) -> float:
    """Return how many pairs are held out for validation, and as many for the test: a larger share of few.

    >>> compute_share(60), compute_share(3_000), compute_share(30_000)
    (6.0, 60.0, 600.0)
    """
    return max(HELD_OUT * pairs, min(float(ENOUGH), SMALL_HELD_OUT * pairs))


def compute_split_size(sizes: Array, share: float) -> int:
    """Return how many pairs a part gets: its share, or half of those in groups that are small enough, if few are.

    Otherwise validation would take them all, and leave the test a handful.
    """
    wanted = max(1, int(share))
    small = int(sizes[sizes <= wanted].sum())
    return max(1, min(wanted, small // 2))


def fill_split(sizes: Array, wanted: int, *, leave: int) -> list[int]:
    """Return the first groups for which there is room; if there is none, the smallest of all.

    So many groups are left for the parts to come, whatever is wanted.
    """
    chosen: list[int] = []
    count = 0
    for group in map(int, numpy.flatnonzero(sizes <= wanted)):
        if count == wanted or len(sizes) - len(chosen) <= leave:
            break
        if count + sizes[group] <= wanted:
            chosen.append(group)
            count += int(sizes[group])
    return chosen or [int(sizes.argmin())]


def check_enough(count: int, purpose: str) -> None:
    """Raise if there are too few pairs."""
    if count < LEAST:
        pairs = "pair" if count == 1 else "pairs"
        fix = "add more; a translator needs thousands"
        raise wrong("data", f"{count} {pairs} {purpose}", f"at least {LEAST} that differ", fix)


def hash_groups(pairs: Array, groups: Groups) -> Array:
    """Return a hash of all distinct pairs of each group, from the hashes of the pairs.

    The smallest number of its pairs would be the smaller the more there are, and the largest groups come first.
    """
    found = bytearray()
    for begin in range(0, len(groups.bounds) - 1, BLOCK):
        bounds = groups.bounds[begin : begin + BLOCK + 1].astype(numpy.int64)
        numbers = pairs[groups.members[bounds[0] : bounds[-1]]]
        owners = numpy.repeat(numpy.arange(len(bounds) - 1), numpy.diff(bounds))
        numbers = numbers[numpy.lexsort((numbers, owners))]
        distinct = numpy.append(True, (numbers[1:] != numbers[:-1]) | (owners[1:] != owners[:-1]))
        content = numbers[distinct].astype(">u8").tobytes()
        ends = 8 * numpy.cumsum(numpy.bincount(owners[distinct], minlength=len(bounds) - 1))
        starts = [0, *ends[:-1].tolist()]
        found += b"".join(hash_bytes(content[one:other]) for one, other in zip(starts, ends.tolist(), strict=True))
    return numpy.frombuffer(found, dtype=">u8").astype(numpy.uint64)


def exclude_overlaps(hashes: PairHashes, chosen: Array, held_out: Array) -> Array:
    """Return those of the chosen pairs that have no sentence in common with those of `held_out`."""
    shared = numpy.zeros(len(chosen), dtype=bool)
    for side in (hashes.sources, hashes.targets):
        shared |= numpy.isin(side[chosen], side[held_out])
    return chosen[~shared]
