"""Batches of items that are all alike, in an order that seed and epoch decide."""

import numpy

from regard.errors import wrong
from regard.training import DataShare


def shuffle_batches(items: int, batch: int, seed: int, epoch: int, part: DataShare) -> list[list[int]]:
    """The items of an epoch in batches of about `batch`, as far as they are those of one process.

    All batches are of about one size; every process has a row of each.

    >>> shuffle_batches(5, 2, seed=1, epoch=0, part=DataShare())
    [[4, 0, 1], [2, 3]]
    """
    if items < 1:
        raise wrong("data", "no items", "at least one", "check the data")
    order = numpy.random.default_rng([seed, epoch]).permutation(items)
    groups = [group.tolist() for group in numpy.array_split(order, max(1, round(items / batch)))]
    if min(map(len, groups)) < part.world:
        got = f"a batch of {min(map(len, groups))}"
        fix = "use fewer processes, or larger batches"
        raise wrong("data", got, f"at least {part.world}, one for each process", fix)
    return [list(part.select(group)) for group in groups]
