"""Pairs that stay together because they share a sentence: connected groups, found in arrays of hashes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy

from regard.tasks.data.rows import Array


class Groups(NamedTuple):
    """Group g has the pairs `members[bounds[g]:bounds[g + 1]]`, in the order of the file."""

    members: Array
    bounds: Array

    @property
    def sizes(self) -> Array:
        """How many pairs each group has."""
        return numpy.diff(self.bounds)

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
    labels = label_groups([find_first_equal(keys) for keys in sides])
    members = numpy.argsort(labels, kind="stable")
    starts = numpy.flatnonzero(numpy.diff(labels[members], prepend=-1))
    return Groups(members, numpy.append(starts, len(labels)))


def find_first_equal(keys: Array) -> Array:
    """Return for each item the first one that has the same key.

    >>> find_first_equal(numpy.array([5, 3, 5, 3, 4])).tolist()
    [0, 1, 0, 1, 4]
    """
    order = numpy.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = numpy.append(True, ordered[1:] != ordered[:-1])[: len(keys)]
    first = numpy.empty_like(order)
    first[order] = order[begins][numpy.cumsum(begins) - 1]
    return first


def label_groups(firsts: Sequence[Array]) -> Array:
    """Return the smallest item of each item's group, if item i belongs to the group of `first[i]` for each `first`.

    Groups that touch take the smaller label, all at once, until none touch; every round at least halves their number.
    """
    labels = numpy.arange(len(firsts[0]))
    links = [(items, first[items]) for first in firsts for items in [numpy.flatnonzero(first != labels)]]
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
