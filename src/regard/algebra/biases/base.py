"""What every bias has."""

from abc import abstractmethod
from typing import Literal

import torch

from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Float, Tensor
from regard.algebra.terms import Term, drop_claims, has_new_definition

BiasForm = Literal["column", "dense"]


class Bias(Term):
    """A number for each pair that depends on indices alone. `forward` is the definition."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "forward"):
            drop_claims(cls, {"form": Bias.form})

    @abstractmethod
    def forward(self, pairs: Pairs) -> Float[Tensor, "..."]:
        """Return the numbers for these pairs, in a shape that broadcasts to `(*lead, row, column)`."""

    def form(self, *, causal: bool, shift_invariant: bool, keys: int) -> BiasForm:
        """Return "column" if, with such a mask and normalizer, one number for each key gives the same weights."""
        return "dense"

    def column(self, pairs: Pairs) -> Float[Tensor, "..."]:
        """Return the number for each key, `(*lead, column)`, if the form is "column"."""
        raise NotImplementedError

    @property
    def columnwise(self) -> bool:
        """Whether all queries have the same number for a key: then the number of queries does not matter."""
        device = next((tensor.device for tensor in self.tensors()), torch.device("cpu"))
        with torch.no_grad():
            table: Tensor = self(Pairs(2, 1, device=device))
        return table.dim() < 2 or table.shape[-2] == 1

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        """Raise if this bias does not fit a table of that size."""
