"""The mask of documents that are packed into one sequence."""

import math
from dataclasses import dataclass

import torch

from regard.algebra.entries import list_as, make_thirds
from regard.algebra.masks.base import Mask
from regard.algebra.masks.lengths import as_integers
from regard.algebra.pairs import Pairs, RowBlocks
from regard.algebra.shapes import Allowed, Bool, Int, Integer, Tensor, check_unambiguous_lead
from regard.errors import wrong


@list_as(
    "documents",
    lambda s: Documents(make_thirds(s.keys), make_thirds(s.queries)),
    write="Documents(documents)",
    aliases="packed segments block-diagonal 文档",
)
@dataclass(frozen=True, slots=True, eq=False)
class Documents(Mask):
    """Queries see the keys of their own document: packed sequences.

    `keys` has the document of each key as a whole number, also a negative one; `queries` that of each query. Without
    `queries` the queries are the last keys.

    >>> Documents(torch.tensor([0, 0, 1])).table(3, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """

    keys: Integer[Tensor, "*#lead key"]
    queries: Integer[Tensor, "*#lead query"] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", as_integers("keys", self.keys))
        if self.queries is not None:
            object.__setattr__(self, "queries", as_integers("queries", self.queries))

    def allows(self, pairs: Pairs) -> Allowed:
        documents, index = (self.keys, pairs.position) if self.queries is None else (self.queries, pairs.row)
        return documents[..., index.flatten(), None] == self.keys[..., None, pairs.column.flatten()]

    def cover(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        documents = self._list_query_documents(blocks.queries, blocks.keys)
        names, numbers = torch.cat([documents, self.keys.expand(*self.lead, -1)], -1).unique(return_inverse=True)
        found = torch.zeros(len(blocks.rows), blocks.keys, dtype=torch.bool, device=self.keys.device)
        for own in numbers.flatten(0, -2) if numbers.dim() > 1 else [numbers]:
            present = torch.zeros(len(blocks.rows), len(names), dtype=torch.bool, device=self.keys.device)
            found |= present.scatter_(1, own[blocks.rows], True)[:, own[blocks.queries :]]
        return found

    def cover_fully(self, blocks: RowBlocks) -> Bool[Tensor, "#block key"]:
        documents = self._list_query_documents(blocks.queries, blocks.keys).reshape(-1, blocks.queries)[:, blocks.rows]
        keys = self.keys.expand(*self.lead, -1).reshape(-1, 1, blocks.keys)
        alone = documents.amin(-1, keepdim=True) == documents.amax(-1, keepdim=True)
        return (alone & (documents[..., :1] == keys)).all(0)

    def segment_queries(self, queries: int, keys: int) -> Int[Tensor, " query"] | None:
        return self._list_query_documents(queries, keys).flatten() if math.prod(self.lead) == 1 else None

    def _list_query_documents(self, queries: int, keys: int) -> Integer[Tensor, "*lead query"]:
        own = self.keys[..., keys - queries :] if self.queries is None else self.queries
        return own.expand(*self.lead, -1)

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_unambiguous_lead("mask.keys", tuple(self.keys.shape[:-1]), lead)
        if self.keys.shape[-1] != keys:
            got, fix = f"{self.keys.shape[-1]} documents", "name a document for each key"
            raise wrong("mask.keys", got, f"keys={keys}", fix)
        if self.queries is not None:
            check_unambiguous_lead("mask.queries", tuple(self.queries.shape[:-1]), lead)
        if self.queries is None and queries > keys:
            raise wrong("mask.queries", None, f"documents of {queries} queries", "pass Documents(keys, queries)")
        if self.queries is not None and self.queries.shape[-1] != queries:
            got, fix = f"{self.queries.shape[-1]} documents", "name a document for each query"
            raise wrong("mask.queries", got, f"queries={queries}", fix)

    @property
    def lead(self) -> tuple[int, ...]:
        queries = () if self.queries is None else self.queries.shape[:-1]
        return tuple(torch.broadcast_shapes(self.keys.shape[:-1], queries))

    def add_head_axis(self) -> Mask:
        parts = [part if part is None or part.dim() < 2 else part.unsqueeze(-2) for part in (self.keys, self.queries)]
        return self if parts[0] is self.keys and parts[1] is self.queries else Documents(*parts)  # type: ignore[arg-type]
