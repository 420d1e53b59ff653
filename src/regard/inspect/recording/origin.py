"""What the weights of one attention were computed from: vectors, what is added to their score, lengths of values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    `norm` the length of each value. If `stepwise`, each query has keys of its own, as those of a decoder that changes
    them at each step: those of query $i$ are at places $i n$ to $(i + 1) n - 1$ of `key`. So may be the factors.

    >>> origin = Origin(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0]]]))
    >>> origin.compute_terms(0, 0, slice(0, 1))
    tensor([[3., 8.]])
    """

    query: Float[Tensor, "head query dim"]
    key: Float[Tensor, "group place dim"]
    form: ScoreForm = "dot"
    factor: Float[Tensor, "factor dim"] | None = None
    bias: Tensor | None = None
    reach: int | None = None
    norm: Float[Tensor, "values key"] | None = None
    score: str = HEADER["score"]
    normalizer: str = HEADER["normalizer"]
    setting: Float[Tensor, " setting"] | None = None
    stepwise: bool = False

    def __post_init__(self) -> None:
        fits = self.query.dim() == self.key.dim() == 3 and 0 not in (*self.query.shape, *self.key.shape)
        fits = fits and not (self.stepwise and self.key.shape[1] % self.query.shape[1])
        if not fits or self.query.shape[0] % self.key.shape[0] or self.query.shape[-1] != self.key.shape[-1]:
            got = f"{describe(self.query)} and {describe(self.key)}"
            raise wrong("query and key", got, "(heads, queries, dim) and (groups, keys, dim)", "give whole heads")
        heads, queries, keys = self.shape
        if self.form not in FORMS:
            raise wrong("form", repr(self.form), f"one of {', '.join(FORMS)}", "name how vectors become a score")
        shapes = {
            "factor": (self.factor, ({1, heads, heads * queries if self.stepwise else 1}, {self.query.shape[-1]})),
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
        heads, queries = self.query.shape[:2]
        return heads, queries, self.key.shape[1] // (queries if self.stepwise else 1)

    @property
    def bytes(self) -> int:
        """The bytes of its tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors().values())

    def compute_terms(self, head: int, query: int, keys: slice) -> Float[Tensor, "key dim"]:
        """Return the terms of the scores of one query and some keys, a column for each dimension."""
        near, far = self.query[head, query], self.get_keys(head, query)[keys]
        if self.form == "dot":
            return near * far
        own = self.get_factor(head, query)
        factor = torch.ones(()) if own is None else own
        if self.form == "tanh":
            return factor * torch.tanh(near + far)
        apart = near - far
        return -factor * (apart.square() if self.form == "square" else apart.abs())

    def get_keys(self, head: int, query: int) -> Float[Tensor, "key dim"]:
        """Return the keys that one query of a head is compared with."""
        heads, _, keys = self.shape
        start = query * keys if self.stepwise else 0
        return self.key[_share(self.key, head, heads), start : start + keys]

    def get_factor(self, head: int, query: int) -> Float[Tensor, " dim"] | None:
        """Return the factor of one query of a head, if there is one."""
        if self.factor is None:
            return None
        heads, queries, _ = self.shape
        return self.factor[_share(self.factor, head * queries + query, heads * queries)]

    def select_keys(self, places: Sequence[int]) -> "Origin":
        """Return the same with the keys at some places, in their order; −1: a hidden key."""
        _, queries, keys = self.shape
        steps = queries if self.stepwise else 1
        known, hidden = torch.tensor(places).clamp_min(0), torch.tensor(places) < 0
        by_step = self.key.unflatten(1, (steps, keys))[:, :, known].masked_fill(hidden[:, None], 0.0)
        bias = self.bias
        if bool(hidden.any()) or (bias is not None and bias.shape[2] > 1):
            wide = self.query.new_zeros(1, 1, keys) if bias is None else bias.expand(-1, -1, keys)
            bias = wide[..., known].masked_fill(hidden, float("-inf"))
        norm = None if self.norm is None else self.norm[:, known].masked_fill(hidden, 0.0)
        return replace(self, key=by_step.flatten(1, 2), bias=bias, norm=norm)

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
        names = {"form": self.form, "score": self.score, "normalizer": self.normalizer}
        return {**names, "reach": self.reach, "stepwise": self.stepwise}


def _share(tensor: Tensor, head: int, heads: int) -> int:
    """Return the row of a tensor that a head uses: groups of heads share one."""
    return head * tensor.shape[0] // heads


def join_queries(parts: list[Origin]) -> Origin | None:
    """Return the origin of steps of one query each, or more: over the same keys, or with keys of their own.

    None if they are of different kinds, or have different numbers of keys.
    """
    first, count = parts[0], len(parts)
    alike = all(part.header() == first.header() and part.shape[::2] == first.shape[::2] for part in parts)
    if not alike or not _are_equal([part.setting for part in parts]) or first.reach is not None or first.stepwise:
        return None
    biases = [None if part.bias is None else part.bias.expand(-1, part.shape[1], -1) for part in parts]
    known = [bias for bias in biases if bias is not None]
    joined = replace(
        first,
        query=torch.cat([part.query for part in parts], 1),
        bias=torch.cat(known, 1) if len(known) == count else None,
        norm=first.norm if _are_equal([part.norm for part in parts]) else None,
    )
    if len(known) not in (0, count):
        return None
    if _are_equal([part.key for part in parts]) and _are_equal([part.factor for part in parts]):
        return joined
    keys = torch.cat([part.key.repeat(1, part.shape[1], 1) for part in parts], 1)
    return replace(joined, key=keys, factor=_join_factors(parts), stepwise=True)


def _are_equal(tensors: list[Tensor | None]) -> bool:
    """Return whether all are the same, or none is there."""
    first = tensors[0]
    if first is None:
        return all(tensor is None for tensor in tensors)
    return all(tensor is not None and torch.equal(tensor, first) for tensor in tensors)


def _join_factors(parts: list[Origin]) -> Tensor | None:
    """Return the factors of all steps, for each head one behind the other; one if it serves all."""
    first = parts[0].factor
    if first is None or _are_equal([part.factor for part in parts]):
        return first
    each = [part.factor.expand(part.shape[0], -1)[:, None].expand(-1, part.shape[1], -1) for part in parts]  # type: ignore[union-attr]
    return torch.cat(each, 1).flatten(0, 1)
