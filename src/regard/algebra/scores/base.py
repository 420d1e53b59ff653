"""What a score is, the dot form that fast kernels compute, and sums and multiples of scores."""

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal, TypeVar

import torch

from regard.algebra.shapes import Float, Queries, Scores, Tensor, WideKeys
from regard.algebra.terms import Term, broadcast_per_head, check_setting, drop_claims, has_new_definition, learn_setting
from regard.errors import wrong

Form = Literal["dot", "additive", "pointwise"]


@dataclass(frozen=True, slots=True)
class DotForm:
    r"""The normal form of a score: $s_{ij} = c \langle q'_i, k'_j \rangle + r_i + u_j$.

    $c$ is `scale`, $r$ is `row` and $u$ is `column`. Sums (of concatenated coordinates) and multiples of dot forms are
    dot forms, so a sum of such scores is still one fused call.
    """

    query: Float[Tensor, "*#lead query width"]
    key: Float[Tensor, "*#lead key width"]
    scale: float | Tensor = 1.0
    row: Float[Tensor, "*#lead query"] | None = None
    column: Float[Tensor, "*#lead key"] | None = None

    def __add__(self, other: "DotForm") -> "DotForm":
        left, right = self.fold_scale(), other.fold_scale()
        return DotForm(
            concatenate(left.query, right.query),
            concatenate(left.key, right.key),
            row=add_optional(left.row, right.row),
            column=add_optional(left.column, right.column),
        )

    def multiply(self, factor: float | Tensor) -> "DotForm":
        """Return this form times a number, or a number for each head as `broadcast_per_head` shapes it."""
        per_row = drop_last_axis(factor)
        row = None if self.row is None else self.row * per_row
        column = None if self.column is None else self.column * per_row
        return DotForm(self.query, self.key, self.scale * factor, row, column)

    def fold_scale(self) -> "DotForm":
        """Return the same scores with the scale multiplied into the queries."""
        if isinstance(self.scale, float) and self.scale == 1.0:
            return self
        return replace(self, query=(self.query * self.scale).to(self.query.dtype), scale=1.0)

    def make_scale_positive(self) -> "DotForm":
        """Return the same scores with a scale that is a positive number, as kernels expect it."""
        return self if isinstance(self.scale, float) and self.scale > 0 else self.fold_scale()

    def add_column(self, column: Tensor) -> "DotForm":
        """Return the form with one more number for each key added."""
        return replace(self, column=add_optional(self.column, column))

    def fold_offsets(self, *, keep_row: bool) -> "DotForm":
        """Return the same scores with row and column as coordinates of `query` and `key`.

        `keep_row=False` drops the row, which does not change softmax. In half precision an offset is stored in two
        coordinates, its high and low part, so that only the output is rounded.
        """
        row = self.row if keep_row else None
        if row is None and self.column is None:
            return self if self.row is None else DotForm(self.query, self.key, self.scale)
        form = self.fold_scale()
        queries, keys = [form.query], [form.key]
        if self.column is not None:
            parts = split_precision(self.column, form.key.dtype)
            keys += [part[..., None].expand(*part.shape, 1) for part in parts]
            queries += [torch.ones_like(form.query[..., :1]).expand(*form.query.shape[:-1], len(parts))]
        if row is not None:
            parts = split_precision(row, form.query.dtype)
            queries += [part[..., None] for part in parts]
            keys += [torch.ones_like(form.key[..., :1]).expand(*form.key.shape[:-1], len(parts))]
        return DotForm(concatenate(*queries), concatenate(*keys))

    def compute_scores(self) -> Scores:
        """Return the table of scores."""
        table = self.scale * (self.query @ self.key.transpose(-1, -2))
        table = table if self.row is None else table + self.row[..., :, None]
        return table if self.column is None else table + self.column[..., None, :]


def drop_last_axis(factor: float | Tensor) -> float | Tensor:
    """Return a factor for each head `(heads, 1, 1)` as `(heads, 1)`, and a number as it is."""
    return factor.squeeze(-1) if isinstance(factor, Tensor) and factor.dim() else factor


def split_precision(numbers: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Return tensors of `dtype` whose sum is `numbers`: one, or a high and a low part in half precision."""
    high = numbers.to(dtype)
    return [high, (numbers - high.to(numbers.dtype)).to(dtype)] if dtype in (torch.float16, torch.bfloat16) else [high]


def add_optional(left: Tensor | None, right: Tensor | None) -> Tensor | None:
    """Return the sum of two tensors, either of which may be missing."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


def concatenate(*parts: Tensor) -> Tensor:
    """Concatenate coordinates after broadcasting the lead axes."""
    lead = torch.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return torch.cat([part.expand(*lead, part.shape[-1]) for part in parts], dim=-1)


class Score(Term):
    """How well each query matches each key. `forward` is the definition that every fast path is compared with.

    A subclass that overrides only `forward` is computed by it, block by block: the dot form and `stream` of its parent
    are not used.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "forward"):
            has_dot_form = "dot_form" in vars(cls)
            claims = {"stream": DotScore.stream} if has_dot_form else {"stream": Score.stream, "form": Score.form}
            drop_claims(cls, {**claims, "head_blind": False})

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

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        """Return the same scores by a way that needs less time and memory, if there is one."""
        out: Tensor = self(query, key)
        return out

    def check(self, query: Queries, key: WideKeys) -> None:
        """Raise if these widths do not fit. Most scores need equal ones."""
        if query.shape[-1] != key.shape[-1]:
            fix = "project them to one width, or use a score that takes two: additive, concat, bilinear"
            raise wrong("key", f"width {key.shape[-1]}", f"the width of the query, {query.shape[-1]}", fix)

    def __add__(self, other: "Score") -> "Score":
        return Sum(self, other) if isinstance(other, Score) else NotImplemented

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
    per_head_settings = ("bandwidth",)
    bandwidth: float | Tensor

    def __init__(self, bandwidth: float | Tensor = 1.0) -> None:
        super().__init__()
        fix = "use a small one, such as 0.1, for a kernel that sees only what is near"
        self.hold("bandwidth", check_setting("bandwidth", bandwidth, fix_if_not_positive=fix))

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


class Multiple(DotScore):
    """A score times a number, fixed or learned, one or one for each head. It has a dot form iff the score has."""

    head_blind = True
    per_head_settings = ("factor",)
    factor: float | Tensor

    def __init__(self, score: Score, factor: float | Tensor) -> None:
        super().__init__()
        self.score = score
        self.hold("factor", check_setting("factor", factor))

    @property
    def plan_key(self) -> Hashable:
        return type(self), self.score.plan_key

    @property
    def form(self) -> Form:
        return "dot" if self.score.form == "dot" else "pointwise"

    def forward(self, query: Queries, key: WideKeys) -> Scores:
        table: Tensor = broadcast_per_head(self.factor) * self.score(query, key)
        return table

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        return broadcast_per_head(self.factor) * self.score.stream(query, key)

    def dot_form(self, query: Queries, key: WideKeys) -> DotForm:
        return as_dot(self.score).dot_form(query, key).multiply(broadcast_per_head(self.factor))

    def check(self, query: Queries, key: WideKeys) -> None:
        self.score.check(query, key)


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
