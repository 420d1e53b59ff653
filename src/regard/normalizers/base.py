"""What every normalizer can do."""

from abc import abstractmethod
from typing import ClassVar, Literal

from regard.pairs import Pairs
from regard.shapes import Allowed, Distribution, Scores
from regard.terms import Term

NormalizerForm = Literal["softmax", "softmax-plus-one", "local-p", "row-total", "elementwise", "rows", "sequential"]


class Normalizer(Term):
    """Weights from scores. Whatever the scores, a pair that is not allowed weighs 0, and so does an empty row."""

    form: ClassVar[NormalizerForm]
    shift_invariant: ClassVar[bool] = False

    @abstractmethod
    def forward(self, scores: Scores, allowed: Allowed | None, pairs: Pairs) -> Distribution:
        """The weights of whole rows: `pairs` has all columns. `allowed` None: every pair is."""

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        """Raise where this normalizer does not fit a table of that size."""
