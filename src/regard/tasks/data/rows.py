"""Rows of different lengths in one flat array, in memory or mapped from a file: token ids, or the bytes of texts."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

from regard.training.task import LazySequence

Array = NDArray[Any]


class Rows(LazySequence[Array]):
    """Row i is `values[offsets[i]:offsets[i + 1]]`; with `chosen`, those of its rows, in its order.

    >>> rows = Rows.flatten([[5, 6, 7], [], [8]], "uint16")
    >>> rows[0].tolist(), rows.lengths.tolist(), [row.tolist() for row in rows.select([2, 0])]
    ([5, 6, 7], [3, 0, 1], [[8], [5, 6, 7]])
    """

    def __init__(self, values: Any, offsets: Array, chosen: Array | None = None) -> None:
        self.values, self.offsets, self.chosen = values, offsets, chosen

    @classmethod
    def flatten(cls, rows: Sequence[Sequence[int]], dtype: str) -> "Rows":
        """Return rows of lists."""
        offsets = numpy.zeros(len(rows) + 1, dtype=numpy.int64)
        numpy.cumsum([len(row) for row in rows], out=offsets[1:])
        return cls(numpy.fromiter(chain.from_iterable(rows), dtype=dtype, count=int(offsets[-1])), offsets)

    @property
    def lengths(self) -> Array:
        """The length of each row."""
        lengths = numpy.empty(len(self.offsets) - 1, dtype=numpy.int32)
        numpy.subtract(self.offsets[1:], self.offsets[:-1], out=lengths, casting="unsafe")
        return lengths if self.chosen is None else lengths[self.chosen]

    def select(self, chosen: ArrayLike | slice) -> "Rows":
        """Return some of the rows."""
        own = numpy.arange(len(self), dtype=numpy.uint32) if self.chosen is None else self.chosen
        return Rows(self.values, self.offsets, own[chosen if isinstance(chosen, slice) else numpy.asarray(chosen, int)])

    def restrict(self, chosen: Array) -> "Rows":
        """Return those of all rows, chosen or not, that have these numbers."""
        return Rows(self.values, self.offsets, chosen)

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.chosen is None else len(self.chosen)

    def make(self, index: int) -> Array:
        row = range(len(self))[index] if self.chosen is None else int(self.chosen[index])
        found: Array = self.values[self.offsets[row] : self.offsets[row + 1]]
        return found


def choose_dtype(ids: int) -> str:
    """Return the smallest type of numbers for so many token ids.

    >>> choose_dtype(8000), choose_dtype(100_000)
    ('uint16', 'uint32')
    """
    return "uint16" if ids <= 2**16 else "uint32"


def tabulate_lengths(lengths: "Iterable[int | tuple[int, ...]] | Array") -> Array:
    """Return the lengths of items as a table with a row for each, also if each has one length only."""
    table = numpy.asarray(lengths if isinstance(lengths, numpy.ndarray) else list(lengths))
    return table.reshape(len(table), -1) if len(table) else numpy.zeros((0, 1), dtype=numpy.int64)
