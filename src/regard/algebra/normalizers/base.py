"""What every normalizer can do."""

from abc import abstractmethod
from typing import ClassVar, Literal

from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Allowed, Distribution, Scores
from regard.algebra.terms import Term, drop_claims, has_new_definition

NormalizerForm = Literal["softmax", "softmax-plus-one", "local-p", "row-total", "elementwise", "rows", "sequential"]


class Normalizer(Term):
    """Weights from scores. Whatever the scores, a pair that is not allowed weighs 0, and so does an empty row."""

    form: ClassVar[NormalizerForm] = "rows"
    shift_invariant: ClassVar[bool] = False
    whole_rows: ClassVar[bool] = True
    """Whether it must be given every column of a row, those too that the mask hides from all queries of a block."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "forward"):
            form = cls.form if cls.form == "sequential" else "rows"
            drop_claims(cls, {"form": form, "shift_invariant": False, "whole_rows": True, "head_blind": False})

    @abstractmethod
    def forward(self, scores: Scores, allowed: Allowed | None, pairs: Pairs) -> Distribution:
        """The weights of whole rows. `allowed` None: every pair is.

        `pairs` has all columns if `whole_rows`; otherwise at least all that are allowed.
        """

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        """Raise where this normalizer does not fit a table of that size."""
