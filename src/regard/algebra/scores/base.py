"""What a score is, and sums and multiples of scores."""

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import replace
from numbers import Real
from typing import Literal, TypeVar

import torch

from regard.algebra.scores.dot_form import DotForm as DotForm
from regard.algebra.scores.dot_form import add_optional as add_optional
from regard.algebra.scores.dot_form import concatenate as concatenate
from regard.algebra.scores.dot_form import drop_last_axis as drop_last_axis
from regard.algebra.scores.dot_form import split_precision as split_precision
from regard.algebra.shapes import Queries, Scores, Tensor, WideKeys
from regard.algebra.terms import Term, broadcast_per_head, drop_claims, has_new_definition, learn_setting
from regard.errors import wrong

Form = Literal["dot", "additive", "pointwise"]
KeyGrowth = Literal["none", "linear", "any"]
GROWTHS: tuple[KeyGrowth, ...] = ("none", "linear", "any")


class Score(Term):
    """How well each query matches each key. `forward` is the definition that every fast path is compared with.

    A subclass that overrides only `forward` (or `transform`) is computed by it, block by block: the dot form and
    `stream` of its parent are not used.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "forward") or has_new_definition(cls, "transform"):
            has_dot_form = "dot_form" in vars(cls)
            claims = {"stream": DotScore.stream} if has_dot_form else {"stream": Score.stream, "form": Score.form}
            drop_claims(cls, {**claims, "head_blind": False, "key_growth": Score.key_growth})

    @abstractmethod
    def forward(self, query: Queries, key: WideKeys) -> Scores:
        """Return the scores by the formula, in any float dtype."""

    @property
    def form(self) -> Form:
        """The normal form that it has, on which the plan depends."""
        return "pointwise"

    @property
    def uses_key_positions(self) -> bool:
        """Whether a score depends on the position of the key: then a block must have all keys before it."""
        return any(part.uses_key_positions for part in self.children() if isinstance(part, Score))

    @property
    def centers_keys(self) -> bool:
        """Whether some path subtracts the mean of the keys, to which hidden keys must then not contribute."""
        return any(part.centers_keys for part in self.children() if isinstance(part, Score))

    @property
    def key_growth(self) -> KeyGrowth:
        """How large what it makes of a key may get: as large as the key, some times that, or of any size.

        Numbers that overflow are kept from queries that may not see them: "any" means that they have to be looked at.
        """
        return "any"

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        """Return the same scores by a way that needs less time and memory, if there is one."""
        out: Tensor = self(query, key)
        return out

    def check(self, query: Queries, key: WideKeys) -> None:
        """Raise if these widths do not fit. Most scores need equal ones."""
        if query.shape[-1] != key.shape[-1]:
            fix = "project them to one width, or use a score that takes two: additive, concat, bilinear"
            raise wrong("key", f"width {key.shape[-1]}", f"the width of the query, {query.shape[-1]}", fix)

    def __add__(self, other: "Score | float | Tensor") -> "Score":
        if isinstance(other, Score):
            return Sum(self, other)
        number = float(other) if isinstance(other, Real) else other
        return Offset(self, number) if isinstance(number, float | Tensor) else NotImplemented

    __radd__ = __add__

    def __mul__(self, factor: float | Tensor) -> "Score":
        number = float(factor) if isinstance(factor, Real) else factor
        return Multiple(self, number) if isinstance(number, float | Tensor) else NotImplemented

    __rmul__ = __mul__


class DotScore(Score):
    """A score that also has a dot form."""

    @property
    def form(self) -> Form:
        return "dot"

    @abstractmethod
    def dot_form(self, query: Queries, key: WideKeys) -> DotForm:
        """Return the same scores as a dot form."""

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        return self.dot_form(query, key).compute_scores()


AnyScore = TypeVar("AnyScore", bound=Score)


class KernelScore(Score):
    """A score that falls with a distance, the slower the larger its `bandwidth`: fixed or learned, one or one a head.

    The bandwidth is a number; a tensor with one for each head, which follows `.to()` and is in the `state_dict`; or a
    parameter. Infinity makes all distances alike.
    """

    head_blind = True
    key_growth: KeyGrowth = "none"
    bandwidth: float | Tensor

    def __init__(self, bandwidth: float | Tensor = 1.0) -> None:
        super().__init__()
        fix = "use a small one, such as 0.1, for a kernel that sees only what is near"
        self.hold_setting("bandwidth", bandwidth, fix_if_not_positive=fix)

    @classmethod
    def learned(cls: type[AnyScore], bandwidth: float = 1.0, *, heads: int | None = None) -> AnyScore:
        """Return one whose bandwidth is trained, for each head if heads are given."""
        return cls(learn_setting(bandwidth, heads))


class Sum(DotScore):
    """The sum of two scores. It has a dot form iff both have.

    >>> from regard.algebra.scores import Dot, Gaussian
    >>> (Dot() + 0.5 * Gaussian(bandwidth=2.0)).form
    'dot'
    """

    head_blind = True

    def __init__(self, left: Score, right: Score) -> None:
        super().__init__()
        self.left, self.right = left, right

    @property
    def plan_key(self) -> Hashable:
        return type(self), self.left.plan_key, self.right.plan_key, self.form

    @property
    def form(self) -> Form:
        return "dot" if self.left.form == self.right.form == "dot" else "pointwise"

    @property
    def key_growth(self) -> KeyGrowth:
        return max(self.left.key_growth, self.right.key_growth, key=GROWTHS.index)

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        total: Tensor = self.left(query, key) + self.right(query, key)
        return total

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        return self.left.stream(query, key) + self.right.stream(query, key)

    def dot_form(self, query: Queries, key: WideKeys) -> DotForm:
        return as_dot(self.left).dot_form(query, key) + as_dot(self.right).dot_form(query, key)

    def check(self, query: Queries, key: WideKeys) -> None:
        self.left.check(query, key)
        self.right.check(query, key)


class TransformedScore(Score):
    """A score that changes every number of another score by itself: `transform` is all that a subclass adds."""

    head_blind = True

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    @property
    def key_growth(self) -> KeyGrowth:
        return self.score.key_growth

    @abstractmethod
    def transform(self, scores: Scores) -> Scores:
        """Return the numbers of this score from those of the other."""

    @property
    def plan_key(self) -> Hashable:
        return type(self), self.score.plan_key

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        return self.transform(self.score(query, key))

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        return self.transform(self.score.stream(query, key))

    def check(self, query: Queries, key: WideKeys) -> None:
        self.score.check(query, key)


class AffineScore(TransformedScore, DotScore):
    """A score times or plus a number. It has a dot form iff the score has."""

    @property
    def form(self) -> Form:
        return "dot" if self.score.form == "dot" else "pointwise"


class Multiple(AffineScore):
    """A score times a number, fixed or learned, one or one for each head. It has a dot form iff the score has."""

    factor: float | Tensor

    def __init__(self, score: Score, factor: float | Tensor) -> None:
        super().__init__(score)
        self.hold_setting("factor", factor)

    def transform(self, scores: Scores) -> Scores:
        return broadcast_per_head(self.factor) * scores

    def dot_form(self, query: Queries, key: WideKeys) -> DotForm:
        return as_dot(self.score).dot_form(query, key).multiply(broadcast_per_head(self.factor))


class Offset(AffineScore):
    """A score plus a number, fixed or learned, one or one for each head. It has a dot form iff the score has.

    Softmax does not see it; a sigmoid does.

    >>> from regard.algebra.scores import Dot
    >>> (Dot() + 1.5)(torch.eye(2), torch.eye(2))
    tensor([[2.5000, 1.5000],
            [1.5000, 2.5000]])
    """

    offset: float | Tensor

    def __init__(self, score: Score, offset: float | Tensor) -> None:
        super().__init__(score)
        self.hold_setting("offset", offset)

    def transform(self, scores: Scores) -> Scores:
        return scores + broadcast_per_head(self.offset)

    def dot_form(self, query: Queries, key: WideKeys) -> DotForm:
        form = as_dot(self.score).dot_form(query, key)
        offset = drop_last_axis(broadcast_per_head(self.offset)) + torch.zeros_like(form.query[..., 0])
        return replace(form, row=add_optional(form.row, offset))


def check_widths(query: Tensor, key: Tensor, expected: tuple[int, int], fix: str) -> None:
    """Raise unless query and key have the widths that a score was built for."""
    for name, tensor, width in zip(("query", "key"), (query, key), expected, strict=True):
        if tensor.shape[-1] != width:
            raise wrong(name, f"width {tensor.shape[-1]}", f"the score's own {width}", fix)


def as_dot(score: Score) -> DotScore:
    """Return the score, which the plan has found to have a dot form; raise if it has none."""
    if not isinstance(score, DotScore):
        raise wrong("score", type(score).__name__, "a score with a dot form", "ask `score.form` first")
    return score
