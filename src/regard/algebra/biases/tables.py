"""Biases that are given as a tensor: one number for each key, or for each pair."""

import torch

from regard.algebra.biases.base import Bias, BiasForm
from regard.algebra.entries import list_as
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Float, Tensor, check_lead, check_tensor, fits
from regard.errors import wrong


@list_as("prior", lambda s: Prior(torch.linspace(-1, 1, s.keys)), write="Prior(numbers)", aliases="key-bias 先验")
class Prior(Bias):
    r"""A number for each key that all queries share.

    $$ b_{ij} = u_j $$

    with $u$ = `prior`, `(*lead, keys)`, fixed or learned.

    Lowers to: one more coordinate of the keys.
    """

    prior: Tensor

    def __init__(self, prior: Float[Tensor, "*lead key"]) -> None:
        super().__init__()
        self.hold("prior", check_tensor("prior", prior))

    def forward(self, pairs: Pairs) -> Float[Tensor, "..."]:
        return self.prior[..., None, pairs.column[0]]

    def form(self, *, causal: bool, shift_invariant: bool, keys: int) -> BiasForm:
        return "column"

    def column(self, pairs: Pairs) -> Float[Tensor, "..."]:
        return self.prior[..., pairs.column[0]]

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_lead("bias.prior", tuple(self.prior.shape[:-1]), lead)
        if self.prior.shape[-1] != keys:
            got, fix = f"{self.prior.shape[-1]} numbers", "give one number for each key"
            raise wrong("bias.prior", got, f"keys={keys}", fix)


@list_as(
    "dense",
    lambda s: Dense(torch.linspace(-1, 1, s.queries * s.keys).view(s.queries, s.keys)),
    write="Dense(table)",
    aliases="table attn-bias additive-mask 偏置表",
)
class Dense(Bias):
    r"""A number for each pair, written out.

    $$ b_{ij} = t_{ij} $$

    with $t$ = `table`, `(*lead, queries, keys)`, either of which may be 1, fixed or learned; −inf forbids the pair.

    Lowers to: a dense float mask if no gradient is needed, else query blocks.
    """

    table: Tensor

    def __init__(self, table: Float[Tensor, "*lead query key"]) -> None:
        super().__init__()
        self.hold("table", check_tensor("table", table))

    def forward(self, pairs: Pairs) -> Float[Tensor, "..."]:
        rows = self.table if self.table.shape[-2] == 1 else self.table[..., pairs.row[:, 0], :]
        return rows if self.table.shape[-1] == 1 else rows[..., pairs.column[0]]

    @property
    def columnwise(self) -> bool:
        return False

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_lead("bias.table", tuple(self.table.shape[:-2]), lead)
        if not (fits(self.table.shape[-2], queries) and fits(self.table.shape[-1], keys)):
            got, expected = tuple(self.table.shape[-2:]), f"(queries, keys) = ({queries}, {keys})"
            raise wrong("bias.table", got, expected, "give it one row for each query and one column for each key")
