"""The dot form: the normal form of scores that fast kernels compute."""

from dataclasses import dataclass, replace

import torch

from regard.algebra.shapes import Float, Scores, Tensor


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
        key = self.key.transpose(-1, -2)
        if isinstance(self.scale, float) and self.query.dtype in (torch.float32, torch.float64):
            table = (self.query if self.scale == 1.0 else self.query * self.scale) @ key  # one table less to write
        else:  # a half would round the query once more
            table = self.scale * (self.query @ key)
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
