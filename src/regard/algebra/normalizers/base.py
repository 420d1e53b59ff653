"""What every normalizer has."""

from abc import abstractmethod
from typing import ClassVar, Literal

from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Allowed, Distribution, Scores
from regard.algebra.terms import Term, drop_claims, has_new_definition

NormalizerForm = Literal["softmax", "softmax-plus-one", "local-p", "row-total", "elementwise", "rows", "sequential"]


class Normalizer(Term):
    """Turns scores into weights. Whatever the scores, the weight of a pair that is not allowed is 0."""

    form: ClassVar[NormalizerForm] = "rows"
    shift_invariant: ClassVar[bool] = False
    whole_rows: ClassVar[bool] = True
    """Whether it needs every column of a row, also those that the mask hides from all queries of a block."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "forward"):
            form = cls.form if cls.form == "sequential" else "rows"
            drop_claims(cls, {"form": form, "shift_invariant": False, "whole_rows": True, "head_blind": False})

    @abstractmethod
    def forward(self, scores: Scores, allowed: Allowed | None, pairs: Pairs) -> Distribution:
        """Return the weights; `allowed` None allows every pair.

        `pairs` has all columns if `whole_rows`; otherwise at least all that are allowed.
        """

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        """Raise if this normalizer does not fit a table of that size."""


ANY_PAIRS = Pairs(0, 0)  # for normalizers that do not ask where a row or column is: `Sparsemax()(scores)`


class RowNormalizer(Normalizer):
    """A normalizer whose rows do not depend on each other, on the head, or on columns that the mask hides."""

    whole_rows = False
    head_blind = True
