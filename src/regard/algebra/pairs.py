"""The (query, key) pairs of a computation: all that a mask, a bias or a normalizer knows of positions."""

from typing import NamedTuple

import torch

from regard.algebra.shapes import Int, Tensor

Selection = tuple[int, int] | Tensor  # start and stop, or the indices themselves


class Pairs:
    """The queries `rows` against the keys `columns`, each `(start, stop)` or indices, of a table `queries` × `keys`.

    The last query is at the position of the last key: query i is at position `keys - queries + i` of the keys. So one
    cached decoding step (one query, all keys so far) needs no special case. Indices are made when they are asked for.

    >>> Pairs(2, 3).position.flatten().tolist()
    [1, 2]
    """

    __slots__ = ("columns", "device", "keys", "queries", "rows")

    def __init__(
        self,
        queries: int,
        keys: int,
        *,
        rows: Selection | None = None,
        columns: Selection | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.queries, self.keys, self.device = queries, keys, device
        self.rows = (0, queries) if rows is None else rows
        self.columns = (0, keys) if columns is None else columns

    @property
    def row(self) -> Int[Tensor, "row 1"]:
        """The index of each query, as a column."""
        return self._list_indices(self.rows)[:, None]

    @property
    def column(self) -> Int[Tensor, "1 column"]:
        """The index of each key, as a row."""
        return self._list_indices(self.columns)[None, :]

    @property
    def position(self) -> Int[Tensor, "row 1"]:
        """The position of each query among the keys."""
        return self.row + (self.keys - self.queries)

    def _list_indices(self, selection: Selection) -> Tensor:
        return selection if isinstance(selection, Tensor) else torch.arange(*selection, device=self.device)


class Span(NamedTuple):
    """The queries `start … stop − 1` and the keys that they may see: `first … last − 1`, or some of them, by index."""

    start: int
    stop: int
    first: int
    last: int
    columns: Int[Tensor, " column"] | None = None

    def build_pairs(self, queries: int, keys: int, device: torch.device | str) -> Pairs:
        """Return the pairs of the span in a table of that size."""
        columns = (self.first, self.last) if self.columns is None else self.columns
        return Pairs(queries, keys, rows=(self.start, self.stop), columns=columns, device=device)


class RowBlocks(NamedTuple):
    """Blocks of queries, by their indices, of a table `queries` × `keys`. A short block repeats its last query."""

    rows: Int[Tensor, "block row"]
    queries: int
    keys: int

    @property
    def position(self) -> Int[Tensor, "block row"]:
        """The position of each query among the keys."""
        return self.rows + (self.keys - self.queries)

    @property
    def column(self) -> Int[Tensor, "1 key"]:
        """The index of each key, as a row."""
        return torch.arange(self.keys, device=self.rows.device)[None, :]
