"""Which (query, key) pairs a computation is about: the only thing that position terms get to see."""

import torch

from regard.algebra.shapes import Int, Tensor


class Pairs:
    """The queries `rows` against the keys `columns`, each `(start, stop)`, out of a table of `queries` × `keys`.

    The last query sits on the last key: query i stands at position `keys - queries + i` on the axis of the
    keys. One cached decoding step (one query, all keys so far) therefore needs no special case. No index is
    written out before a term asks for it.

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
        """The index of each query, down."""
        return torch.arange(*self.rows, device=self.device)[:, None]

    @property
    def column(self) -> Int[Tensor, "1 column"]:
        """The index of each key, across."""
        return torch.arange(*self.columns, device=self.device)[None, :]

    @property
    def position(self) -> Int[Tensor, "row 1"]:
        """Where each query stands on the axis of the keys."""
        return self.row + (self.keys - self.queries)
