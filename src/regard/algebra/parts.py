"""The parts of one attention and the facts of one call: all that a plan depends on."""

from collections.abc import Hashable
from typing import Literal, NamedTuple

import torch

from regard.algebra.aggregates import Aggregate
from regard.algebra.biases import Bias
from regard.algebra.masks import Mask
from regard.algebra.normalizers import Normalizer
from regard.algebra.pairs import Pairs
from regard.algebra.scores import Score
from regard.algebra.shapes import Tensor
from regard.algebra.terms import Term, cast_module


class Parts(NamedTuple):
    """attention = aggregate( normalizer( score(q, k) + bias(i, j), mask(i, j) ), v )."""

    score: Score
    bias: Bias | None
    mask: Mask
    normalizer: Normalizer
    aggregate: Aggregate

    @property
    def plan_key(self) -> Hashable:
        """What a plan may depend on."""
        # Whether anything is learned matters only if there is a bias, and finding out takes a while.
        bias = None if self.bias is None else (self.bias.plan_key, self.bias.wants_grad, self.normalizer.wants_grad)
        parts = self.score, self.mask, self.normalizer, self.aggregate
        return bias, *(type(part) if type(part).plan_key in _BY_TYPE else part.plan_key for part in parts)

    def cast(self, dtype: torch.dtype) -> "Parts":
        """Return the parts with their float tensors in this dtype; gradients flow to the tensors themselves."""
        score, bias, mask, normalizer, aggregate = self
        bias = None if bias is None else cast_module(bias, dtype)
        return Parts(
            cast_module(score, dtype), bias, mask, cast_module(normalizer, dtype), cast_module(aggregate, dtype)
        )

    @property
    def uniform(self) -> bool:
        """Whether all but the mask surely treats heads alike: no bias, no tensor of its own, parts that say so."""
        terms = (self.score, self.normalizer, self.aggregate)
        if self.bias is not None or any(term.tensors() for term in terms):
            return False
        return all(part.head_blind for term in terms for part in term.modules() if isinstance(part, Term))

    def tensors(self) -> tuple[Tensor, ...]:
        """Return every tensor of the parts that a gradient may flow to."""
        bias = () if self.bias is None else self.bias.tensors()
        tensors = (*self.score.tensors(), *bias, *self.normalizer.tensors(), *self.aggregate.tensors())
        return tuple({id(tensor): tensor for tensor in tensors}.values())


_BY_TYPE = (Term.plan_key, Mask.plan_key)  # plan keys that are only the type: asking each part would be slow

NumericalHazard = Literal["none", "digits", "range"]
"""What the values of the tensors need: nothing, more digits than their dtype has, or a path that cannot overflow."""


class CallFacts(NamedTuple):
    """The sizes and circumstances of one call, without its tensors."""

    lead: tuple[int, ...]
    queries: int
    keys: int
    dim: int
    value: int
    dtype: torch.dtype = torch.float32
    device: str = "cpu"
    dropout: bool = False
    grad: bool = False
    traced: bool = False
    mapped: bool = False  # by a transform of torch.func, such as vmap or grad
    native: str = ""  # "loaded", or why the compiled library will never be; empty while it may be
    hazard: NumericalHazard = "none"
    intercepted: bool = False  # by a TorchDispatchMode, such as FakeTensorMode: tensors may have no memory
    sparse: bool = False  # blocks of queries see few of the keys, though no single range of them


class AttentionCall(NamedTuple):
    """One attention to compute. `seed` addresses the noise of dropout and of random aggregates."""

    parts: Parts
    query: Tensor
    key: Tensor
    value: Tensor
    dropout: float = 0.0
    seed: Tensor | None = None
    result_dtype: torch.dtype | None = None  # if it is computed in another dtype than the result has

    @property
    def lead(self) -> tuple[int, ...]:
        """The lead axes that queries, keys and values broadcast to."""
        lead: torch.Size = torch.broadcast_shapes(self.query.shape[:-2], self.key.shape[:-2], self.value.shape[:-2])
        return lead

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the caller's tensors."""
        return self.result_dtype or self.value.dtype

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.query.shape[-2]

    @property
    def keys(self) -> int:
        """The number of keys."""
        return self.key.shape[-2]

    def pairs(self) -> Pairs:
        """Return all pairs of the call."""
        return Pairs(self.query.shape[-2], self.key.shape[-2], device=self.query.device)

    def cast(self, dtype: torch.dtype) -> "AttentionCall":
        """Return the same call in another dtype."""
        query, key, value = self.query.to(dtype), self.key.to(dtype), self.value.to(dtype)
        return AttentionCall(self.parts.cast(dtype), query, key, value, self.dropout, self.seed, self.dtype)
