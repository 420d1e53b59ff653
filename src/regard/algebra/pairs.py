"""The (query, key) pairs of a computation: all that a mask, a bias or a normalizer knows of positions."""

import torch

from regard.algebra.shapes import Int, Tensor


class Pairs:
    """The queries `rows` against the keys `columns`, each `(start, stop)`, out of a table of `queries` × `keys`.

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
        rows: tuple[int, int] | None = None,
        columns: tuple[int, int] | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.queries, self.keys, self.device = queries, keys, device
        self.rows, self.columns = rows or (0, queries), columns or (0, keys)

    @property
    def row(self) -> Int[Tensor, "row 1"]:
        """The index of each query, as a column."""
        return torch.arange(*self.rows, device=self.device)[:, None]

    @property
    def column(self) -> Int[Tensor, "1 column"]:
        """The index of each key, as a row."""
        return torch.arange(*self.columns, device=self.device)[None, :]

    @property
    def position(self) -> Int[Tensor, "row 1"]:
        """The position of each query among the keys."""
        return self.row + (self.keys - self.queries)
