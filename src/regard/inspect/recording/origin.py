"""What the weights of one attention were computed from: vectors, what is added to their score, lengths of values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from regard.algebra.shapes import Float, Tensor, describe
from regard.errors import wrong

ScoreForm = Literal["dot", "tanh", "square", "absolute"]
FORMS: tuple[str, ...] = get_args(ScoreForm)
HEADER = {"form": "dot", "score": "scaled dot product", "normalizer": "softmax"}
OPTIONAL = ("factor", "bias", "norm", "setting")


@dataclass(frozen=True, slots=True)
class Origin:
    r"""The vectors whose terms add up to a score.

    $$ s_{ij} = \sum_d f_d(q_{id}, k_{jd}) + b_{ij} $$

    with $q$ = `query`, $k$ = `key` (one for each group of heads), $b$ = `bias` (of size 1 along axes that share it, −∞
    if a key is hidden, as it is beyond `reach`), and $f_d(q, k)$ by the `form`: $q k$ (dot), $v_d \tanh(q + k)$ (tanh),
    $-v_d (q - k)^2$ (square) or $-v_d |q - k|$ (absolute), where $v$ = `factor`, one or one for each head. `score` and
    `normalizer` are names, `setting` the temperature, α or shift of the normalizer, one or one for each head, and
    `norm` the length of each value.

    >>> origin = Origin(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0]]]))
    >>> origin.compute_terms(0, 0, slice(0, 1))
    tensor([[3., 8.]])
    """

    query: Float[Tensor, "head query dim"]
    key: Float[Tensor, "group key dim"]
    form: ScoreForm = "dot"
    factor: Float[Tensor, "factor dim"] | None = None
    bias: Tensor | None = None
    reach: int | None = None
    norm: Float[Tensor, "values key"] | None = None
    score: str = HEADER["score"]
    normalizer: str = HEADER["normalizer"]
    setting: Float[Tensor, " setting"] | None = None

    def __post_init__(self) -> None:
        fits = self.query.dim() == self.key.dim() == 3 and 0 not in (*self.query.shape, *self.key.shape)
        if not fits or self.query.shape[0] % self.key.shape[0] or self.query.shape[-1] != self.key.shape[-1]:
            got = f"{describe(self.query)} and {describe(self.key)}"
            raise wrong("query and key", got, "(heads, queries, dim) and (groups, keys, dim)", "give whole heads")
        heads, _, keys = self.shape
        if self.form not in FORMS:
            raise wrong("form", repr(self.form), f"one of {', '.join(FORMS)}", "name how vectors become a score")
        shapes = {
            "factor": (self.factor, ({1, heads}, {self.query.shape[-1]})),
            "bias": (self.bias, tuple({1, size} for size in self.shape)),
            "norm": (self.norm, ({1, heads, self.key.shape[0]}, {keys})),
            "setting": (self.setting, ({1, heads},)),
        }
        for name, (tensor, sizes) in shapes.items():
            if tensor is None:
                continue
            if tensor.dim() != len(sizes) or any(n not in some for n, some in zip(tensor.shape, sizes, strict=True)):
                expected = ", ".join(" or ".join(map(str, sorted(some))) for some in sizes)
                raise wrong(name, describe(tensor), f"({expected})", "give one for each, or one for all")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return self.query.shape[0], self.query.shape[1], self.key.shape[1]

    @property
    def bytes(self) -> int:
        """The bytes of its tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors().values())

    def compute_terms(self, head: int, query: int, keys: slice) -> Float[Tensor, "key dim"]:
        """Return the terms of the scores of one query and some keys, a column for each dimension."""
        near, far = self.query[head, query], self.key[_share(self.key, head, self.shape[0]), keys]
        if self.form == "dot":
            return near * far
        factor = torch.ones(()) if self.factor is None else self.factor[_share(self.factor, head, self.shape[0])]
        if self.form == "tanh":
            return factor * torch.tanh(near + far)
        apart = near - far
        return -factor * (apart.square() if self.form == "square" else apart.abs())

    def get_bias(self, head: int, query: int) -> Float[Tensor, " key"]:
        """Return what is added to the scores of one query; −∞ for keys that are hidden."""
        heads, _, keys = self.shape
        line = self.query.new_zeros(keys)
        if self.bias is not None:
            line = line + self.bias[_share(self.bias, head, heads), query if self.bias.shape[1] > 1 else 0]
        if self.reach is not None:
            line[max(0, query + self.reach + 1) :] = float("-inf")
        return line

    def get_setting(self, head: int) -> float | None:
        """Return the setting of the normalizer for one head."""
        return None if self.setting is None else float(self.setting[_share(self.setting, head, self.shape[0])])

    def get_norms(self, head: int) -> Float[Tensor, " key"] | None:
        """Return the lengths of the values that one head adds up."""
        return None if self.norm is None else self.norm[_share(self.norm, head, self.shape[0])]

    def tensors(self) -> dict[str, Tensor]:
        """Return its tensors by name."""
        named = {name: getattr(self, name) for name in ("query", "key", *OPTIONAL)}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def header(self) -> Mapping[str, Any]:
        """Return what a file keeps beside the tensors."""
        return {"form": self.form, "score": self.score, "normalizer": self.normalizer, "reach": self.reach}


def _share(tensor: Tensor, head: int, heads: int) -> int:
    """Return the row of a tensor that a head uses: groups of heads share one."""
    return head * tensor.shape[0] // heads


def join_queries(parts: list[Origin]) -> Origin | None:
    """Return the origin of steps of one query each, or more, over the same keys; None if the keys differ."""
    first = parts[0]
    alike = all(part.header() == first.header() and part.key.shape == first.key.shape for part in parts)
    if not alike or not all(torch.equal(part.key, first.key) for part in parts) or first.reach is not None:
        return None
    bias = None
    if first.bias is not None:
        full = [part.bias.expand(part.bias.shape[0], part.shape[1], -1) for part in parts if part.bias is not None]
        bias = torch.cat(full, 1) if len(full) == len(parts) else None
    query = torch.cat([part.query for part in parts], 1)
    return Origin(
        query, first.key, first.form, first.factor, bias, None, first.norm, first.score, first.normalizer, first.setting
    )
