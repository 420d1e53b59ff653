"""What a score is, the dot form that fast kernels understand, and the algebra of sums and multiples."""

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Literal

import torch

from regard.algebra.shapes import Float, Queries, Scores, Tensor, WideKeys
from regard.algebra.terms import Term, broadcast_per_head, check_setting, drop_claims, has_new_definition
from regard.errors import wrong

Form = Literal["dot", "additive", "pointwise"]


@dataclass(frozen=True, slots=True)
class DotForm:
    r"""The normal form of a score: $s_{ij} = c \langle q'_i, k'_j \rangle + r_i + u_j$.

    $c$ is `scale`, $r$ is `row` and $u$ is `column`. It is closed under addition, by putting the coordinates side
    by side, and under multiples; so a sum of such scores is still one fused call.
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
        """This score times a number, or numbers for each head, `(heads, 1, 1)`: what `broadcast_per_head` makes of `(heads,)`."""
        flat = factor.squeeze(-1) if isinstance(factor, Tensor) and factor.dim() else factor
        row = None if self.row is None else self.row * flat
        column = None if self.column is None else self.column * flat
        return DotForm(self.query, self.key, self.scale * factor, row, column)

    def fold_scale(self) -> "DotForm":
        """The same numbers with the scale multiplied into the queries."""
        if isinstance(self.scale, float) and self.scale == 1.0:
            return self
        return replace(self, query=(self.query * self.scale).to(self.query.dtype), scale=1.0)

    def make_scale_positive(self) -> "DotForm":
        """The same numbers with a scale that is a positive number, as kernels expect it."""
        return self if isinstance(self.scale, float) and self.scale > 0 else self.fold_scale()

    def add_column(self, column: Tensor) -> "DotForm":
        """The same with one more number for each key."""
        return replace(self, column=add_optional(self.column, column))

    def fold_offsets(self, *, keep_row: bool) -> "DotForm":
        """The same numbers in `query` and `plan_key` alone; the row may be dropped where softmax cannot see it.

        In half precision a column is stored in two coordinates, high and low part, so that nothing but the
        rounding of the output is lost.
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
        """The table that this form stands for."""
        table = self.scale * (self.query @ self.key.transpose(-1, -2))
        table = table if self.row is None else table + self.row[..., :, None]
        return table if self.column is None else table + self.column[..., None, :]


def split_precision(numbers: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Numbers as a sum of tensors of `dtype`: one, or high and low part where `dtype` is half as wide."""
    if dtype not in (torch.float16, torch.bfloat16):
        return [numbers.to(dtype)]
    high = numbers.to(dtype)
    return [high, (numbers - high.to(numbers.dtype)).to(dtype)]


def add_optional(left: Tensor | None, right: Tensor | None) -> Tensor | None:
    """The sum of what is there."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


def concatenate(*parts: Tensor) -> Tensor:
    """Coordinates side by side, after broadcasting the lead axes."""
    lead = torch.broadcast_shapes(*(part.shape[:-1] for part in parts))
    return torch.cat([part.expand(*lead, part.shape[-1]) for part in parts], dim=-1)


class Score(Term):
    """How well each query matches each key. `forward` is the definition: the oracle of every fast path.

    A subclass that overrides `forward` alone is computed by it, block by block; the dot form or stream of its parent
    is not used unless it brings its own.
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "forward"):
            own = "dot_form" in vars(cls)
            drop_claims(cls, {"stream": DotScore.stream} if own else {"stream": Score.stream, "form": Score.form})
            drop_claims(cls, {"head_blind": False})

    @abstractmethod
    def forward(self, query: Queries, key: WideKeys) -> Scores:
        """The definition, from the formula, in any float dtype."""

    @property
    def form(self) -> Form:
        """Which normal form it has: the plan depends on it."""
        return "pointwise"

    @property
    def uses_key_positions(self) -> bool:
        """Whether the place of a key among the keys matters: then no block may leave out the keys before it."""
        return any(part.uses_key_positions for part in self.children() if isinstance(part, Score))

    @property
    def centers_keys(self) -> bool:
        """Whether some path subtracts the mean of the keys: then what hidden keys hold must not move it."""
        return any(part.centers_keys for part in self.children() if isinstance(part, Score))

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        """The same numbers by a derivation that needs less time and memory, where there is one."""
        out: Tensor = self(query, key)
        return out

    def check(self, query: Queries, key: WideKeys) -> None:
        """Raise where these widths do not fit. Most scores need equal ones."""
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
    """A score that also has a dot form: a second derivation of the same numbers."""

    @property
    def form(self) -> Form:
        return "dot"

    @abstractmethod
    def dot_form(self, query: Queries, key: WideKeys) -> DotForm:
        """The dot form."""

    def stream(self, query: Queries, key: WideKeys) -> Scores:
        return self.dot_form(query, key).compute_scores()


class Sum(DotScore):
    """Two scores added. It has a dot form iff both have.

    >>> from regard.algebra.scores import Dot, Gaussian
    >>> (Dot() + 0.5 * Gaussian(width=2.0)).form
    'dot'
    """

    head_blind: ClassVar[bool] = True

    def __init__(self, left: Score, right: Score) -> None:
        super().__init__()
        self.left, self.right = left, right

    @property
    def uses_key_positions(self) -> bool:
        return self.left.uses_key_positions or self.right.uses_key_positions

    @property
    def centers_keys(self) -> bool:
        return self.left.centers_keys or self.right.centers_keys

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

    per_head_settings: ClassVar[tuple[str, ...]] = ("factor",)

    head_blind: ClassVar[bool] = True

    def __init__(self, score: Score, factor: float | Tensor) -> None:
        super().__init__()
        check_setting("factor", factor)
        self.score, self.factor = score, factor

    @property
    def uses_key_positions(self) -> bool:
        return self.score.uses_key_positions

    @property
    def centers_keys(self) -> bool:
        return self.score.centers_keys

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


def as_dot(score: Score) -> DotScore:
    """The score, known to have a dot form; the plan asks only where it has."""
    if not isinstance(score, DotScore):
        raise wrong("score", type(score).__name__, "a score with a dot form", "ask `score.form` first")
    return score
