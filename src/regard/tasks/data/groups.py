"""Pairs that stay together because they share a sentence: connected groups, found in arrays of hashes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy

from regard.tasks.data.rows import Array


class Links(NamedTuple):
    """Items, and for each another one that belongs to the same group."""

    items: Array
    others: Array


class Groups(NamedTuple):
    """Group g has the pairs `members[bounds[g]:bounds[g + 1]]`, in the order of the file."""

    members: Array
    bounds: Array

    @property
    def sizes(self) -> Array:
        """How many pairs each group has."""
        return self.bounds[1:] - self.bounds[:-1]

    def list_members(self, groups: Sequence[int]) -> Array:
        """Return the pairs of some groups, one group after the other."""
        parts = [self.members[self.bounds[group] : self.bounds[group + 1]] for group in groups]
        return numpy.concatenate([self.members[:0], *parts])


def group_equal(sides: Sequence[Array]) -> Groups:
    """Return items in groups that share no key with each other on any side, those with the first items first.

    >>> groups = group_equal([numpy.array([7, 8, 9, 8]), numpy.array([1, 2, 1, 3])])
    >>> groups.members.tolist(), groups.bounds.tolist()
    ([0, 2, 1, 3], [0, 2, 4])
    """
    labels = label_groups(len(sides[0]), [link_equal(keys) for keys in sides])
    members = numpy.argsort(labels, kind="stable").astype(numpy.uint32)
    labels = labels[members]
    starts = numpy.flatnonzero(labels[1:] != labels[:-1]) + 1
    bounds = numpy.concatenate([[0], starts, [len(labels)]]) if len(labels) else numpy.zeros(1)
    return Groups(members, bounds.astype(numpy.uint32))


def link_equal(keys: Array) -> Links:
    """Return the items whose key an item before them has, and for each the first that has it.

    >>> [items.tolist() for items in link_equal(numpy.array([5, 3, 5, 3, 4, 5]))]
    [[3, 2, 5], [1, 0, 0]]
    """
    order = numpy.argsort(keys, kind="stable").astype(numpy.uint32)
    ordered = keys[order]
    repeated = numpy.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    heads = repeated.copy()
    # A run of equal keys is one place after another: its head is before the first of them.
    follows = numpy.flatnonzero(repeated[1:] == repeated[:-1] + 1) + 1
    heads[follows] = 0
    heads = numpy.maximum.accumulate(heads) - 1
    return Links(order[repeated], order[heads])


def label_groups(count: int, links: Sequence[Links]) -> Array:
    """Return the smallest item of each item's group, if linked items belong to one group.

    Groups that touch take the smaller label, all at once, until none touch; every round at least halves their number.
    """
    labels = numpy.arange(count, dtype=numpy.uint32)
    changed = True
    while changed:
        changed = False
        for items, others in links:
            one, other = labels[items], labels[others]
            apart = one != other
            changed |= bool(apart.any())
            numpy.minimum.at(labels, numpy.maximum(one, other)[apart], numpy.minimum(one, other)[apart])
            labels = follow_labels(labels)
    return labels


def follow_labels(labels: Array) -> Array:
    """Return for each item the label of its label, and so on, until that is its own.

    >>> follow_labels(numpy.array([0, 0, 1, 2])).tolist()
    [0, 0, 0, 0]
    """
    while True:
        following = labels[labels]
        if numpy.array_equal(following, labels):
            return labels
        labels = following
