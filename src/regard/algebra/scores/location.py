"""Luong's *location* score."""

import torch
from torch import nn

from regard.algebra.entries import list_as
from regard.algebra.scores.base import DotForm, DotScore, KeyGrowth, check_widths
from regard.algebra.shapes import Queries, Scores, WideKeys
from regard.errors import wrong


@list_as(
    "location",
    lambda s: Location(s.query, keys=s.keys),
    write="Location({query}, keys={keys})",
    aliases="luong-location 基于位置",
)
class Location(DotScore):
    r"""A score from the query alone: it chooses positions, whatever the keys are.

    $$ s_{ij} = (W q_i)_j $$

    with $W$ = `weight` (most keys × query width). Luong et al. 2015, eq. 9. Of the keys only their number
    matters.

    Lowers to: a dot product with the rows of $W$ in the place of the keys.

    >>> Location(2, keys=5)(torch.ones(1, 2), torch.empty(3, 7)).shape
    torch.Size([1, 3])
    """

    head_blind = True
    key_growth: KeyGrowth = "none"

    def __init__(self, query: int, *, keys: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(keys, query)))

    @property
    def uses_key_positions(self) -> bool:
        return True

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        everywhere = nn.functional.linear(query, self.weight)[..., : key.shape[-2]]
        lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        return everywhere.expand(*lead, *everywhere.shape[-2:])

    def dot_form(self, query: Queries, key: WideKeys) -> DotForm:
        lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        rows = self.weight[: key.shape[-2]]
        return DotForm(query, rows.expand(*lead, *rows.shape))

    def check(self, query: Queries, key: WideKeys) -> None:
        most, width = self.weight.shape
        if key.shape[-2] > most:
            fix = f"build Location({width}, keys={key.shape[-2]})"
            raise wrong("key", f"{key.shape[-2]} keys", f"at most {most}", fix)
        check_widths(query, key, (width, key.shape[-1]), f"build Location({query.shape[-1]}, keys={most})")
