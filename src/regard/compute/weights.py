"""The weights of an attention: computed on request, and only the part that is requested."""

import copy
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.algebra.aggregates import Soft
from regard.algebra.definition import compute_wide_score, weigh
from regard.algebra.masks import Causal, Full
from regard.algebra.normalizers import Softmax
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall, Parts
from regard.algebra.scores import Dot, ScaledDot
from regard.algebra.shapes import Bool, Float, Int, Tensor, widen
from regard.compute.kernels.summary import RowSummary, summarize, summarize_weights
from regard.compute.lowering.backend import BackendResult, RowTotals
from regard.compute.lowering.fuse import build_dense_bias, build_mask_bias
from regard.compute.lowering.spans import choose_rows_per_block
from regard.compute.planning import Plan
from regard.errors import StaleError, format_message, wrong
from regard.notebook import NotebookDisplay

PARTS = tuple(f"tensor of the {name}" for name in Parts._fields)
TENSORLESS = (Dot, ScaledDot, Full, Causal, Soft)  # they hold no tensors: skipped at each call
BLOCK = 2**20  # scores in a block: what a second cache can hold


class TopWeights(NamedTuple):
    """The largest weights of each query, largest first, and the keys that they belong to."""

    weights: Float[Tensor, "*lead query k"]
    keys: Int[Tensor, "*lead query k"]


class WeightsSummary(NamedTuple):
    """Entropy, received mass and largest weights, from one pass over the weights."""

    entropy: Float[Tensor, "*lead query"]
    received: Float[Tensor, "*lead key"]
    top: TopWeights


class Weights(NotebookDisplay):
    """A handle on the weights; nothing is computed before it is asked for. Dropout is not in them.

    `dense()` and indexing have a gradient; the others have none. They are the weights of the call that made them: if
    its tensors were changed in place since, by an optimizer for example, asking raises a `StaleError`.

    >>> from regard import attend
    >>> q, k, v = torch.zeros(1, 2), torch.eye(2), torch.eye(2)
    >>> output, weights = attend(q, k, v)
    >>> weights.dense(), weights[0, 1], weights.numpy().shape
    (tensor([[0.5000, 0.5000]]), tensor(0.5000), (1, 2))
    """

    __slots__ = ("_call", "_lead", "_log_prob", "_nan_rows", "_plan", "_totals", "_versions")

    def __init__(
        self,
        call: AttentionCall,
        result: BackendResult,
        plan: Plan,
        log_prob: Float[Tensor, "*lead query"] | None = None,
        nan_rows: Bool[Tensor, "*#lead query"] | None = None,
    ) -> None:
        self._call, self._nan_rows, self._versions = call, nan_rows, record_versions(call)
        self._plan, self._log_prob = plan, log_prob
        self._lead: tuple[int, ...] | None = None
        known = result.form is not None and result.total is not None
        self._totals = RowTotals(result.form, result.total) if known else None  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return (*lead, queries, keys), with the lead axes of the output, even if only values or mask have them."""
        return (*(self._lead or self._call.lead), self._call.queries, self._call.keys)

    @property
    def call(self) -> AttentionCall:
        """Return the call that was computed."""
        return self._call

    @property
    def plan(self) -> Plan:
        """Return the plan by which the call was computed."""
        return self._plan

    @property
    def log_prob(self) -> Float[Tensor, "*lead query"] | None:
        """Return the log-probability of the keys that a random aggregate chose; None after others."""
        return self._log_prob

    @property
    def totals(self) -> RowTotals | None:
        """Return what a fused kernel left behind; None after others."""
        return self._totals

    def merge_heads(self) -> "Weights":
        """Return the same with the last two lead axes as one: groups and the heads of each become heads."""
        other = copy.copy(self)
        *rest, groups, heads = self.shape[:-2]
        other._lead = (*rest, groups * heads)
        other._log_prob = None if self._log_prob is None else self._log_prob.flatten(-3, -2)
        return other

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        """Return `dense()[index]`; if some queries are chosen by a number or a slice, only their rows are computed."""
        rows, rest = _split_index(index, self.shape)
        self._check_fresh()
        return self._compute_rows(*rows)[rest]

    def __getattr__(self, name: str) -> Any:
        if hasattr(Tensor, name) and not name.startswith("_"):
            raise AttributeError(f"weights.{name}: got a handle, expected a tensor; fix: write weights.dense().{name}")
        raise AttributeError(name)

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, values: Tensor) -> Tensor:
        return self.dense() @ values

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.dense())

    def __repr__(self) -> str:
        return f"<Weights of shape {self.shape}: dense(), [...], numpy(), tile(), top(k), entropy()>"

    def numpy(self) -> Float[np.ndarray, "*lead query key"]:
        """Return all weights as an array."""
        with torch.no_grad():
            table: Float[np.ndarray, "*lead query key"] = self.dense().detach().cpu().numpy()
        return table

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.numpy(), dtype=dtype)

    def dense(self) -> Float[Tensor, "*lead query key"]:
        """Return all weights."""
        self._check_fresh()
        return self._compute_rows(0, self._call.queries)

    def tile(self, rows: slice, columns: slice) -> Float[Tensor, "*lead row column"]:
        """Return the weights of some queries and keys. If the kernel left its totals, only they are computed."""
        start, stop, _ = _check_step("rows", rows).indices(self._call.queries)
        first, last, _ = _check_step("columns", columns).indices(self._call.keys)
        self._check_fresh()
        with torch.no_grad():
            return self._compute_tile(start, stop, first, last)

    def top(self, k: int) -> TopWeights:
        """Return the k largest weights of each query."""
        return self.summary(k).top

    def entropy(self) -> Float[Tensor, "*lead query"]:
        """Return how spread the weights of each query are, in nats: 0 = one key, log(keys) = all equal."""
        return self.summary(1).entropy

    def received_weight(self) -> Float[Tensor, "*lead key"]:
        """Return how much weight each key gets from all queries together."""
        return self.summary(1).received

    def summary(self, k: int = 5) -> WeightsSummary:
        """Return entropy, received mass and the k largest, in one pass over the weights. Each alone costs as much."""
        if not 1 <= k <= self._call.keys:
            raise wrong("k", k, f"1 … keys={self._call.keys}", "ask for no more keys than there are")
        self._check_fresh()
        entropies, masses, weights, keys, _ = zip(*self._iterate_blocks(k), strict=True)
        received = functools.reduce(torch.Tensor.add_, masses)
        return WeightsSummary(
            torch.cat(entropies, -1), received, TopWeights(torch.cat(weights, -2), torch.cat(keys, -2))
        )

    def _iterate_blocks(self, k: int) -> Iterator[RowSummary]:
        """Yield summaries of whole rows, a block of queries at a time."""
        queries, keys = self._call.queries, self._call.keys
        size = queries
        if self._call.parts.normalizer.form != "sequential":
            depth = self._call.query.shape[-1] if self._call.parts.score.form == "pointwise" else 1
            size = choose_rows_per_block(math.prod(self.shape[:-2]) * keys * depth, queries, budget=BLOCK)
        for start in range(0, queries, size):
            with torch.no_grad():
                yield self._summarize_block(start, min(queries, start + size), k)

    def _summarize_block(self, start: int, stop: int, k: int) -> RowSummary:
        if self._totals is None or self._nan_rows is not None:
            return summarize_weights(self._compute_rows(start, stop), k)
        scores, total, scale = _compute_scores(self._call, self._totals, start, stop, 0, self._call.keys)
        lead = torch.broadcast_shapes(scores.shape[:-2], total.shape[:-1])
        scores, total = scores.expand(*lead, *scores.shape[-2:]), total.expand(*lead, total.shape[-1])
        if self._lead is not None:
            scores, total = self._reshape_lead(scores), total.reshape(*self._lead, total.shape[-1])
        found = summarize(scores, total, scale, k)
        return found if scores.dtype == self._dtype else RowSummary(*(self._cast(part) for part in found))

    def _compute_tile(self, start: int, stop: int, first: int, last: int) -> Tensor:
        if self._totals is None or self._nan_rows is not None:
            return self._compute_rows(start, stop)[..., first:last]
        table = _compute_log_weights(self._call, self._totals, start, stop, first, last)
        return self._cast(self._reshape_lead(table.exp_()))

    def _compute_rows(self, start: int, stop: int) -> Tensor:
        """Compute whole rows by the definition. Rows of a sequential normalizer need all rows before them."""
        call, sequential = self._call, self._call.parts.normalizer.form == "sequential"
        rows = (0, call.queries) if sequential else (start, stop)
        pairs = Pairs(call.queries, call.keys, rows=rows, device=call.query.device)
        query = call.query[..., rows[0] : rows[1], :]
        score = functools.partial(compute_wide_score, call.parts.score.stream)
        table = weigh(call.parts, score, query, call.key, pairs, seed=call.seed).weights
        table = table[..., start:stop, :] if sequential else table
        if self._nan_rows is not None:
            table = table.masked_fill(self._nan_rows[..., start:stop, None], float("nan"))
        return self._cast(self._reshape_lead(table.expand(*self._call.lead, *table.shape[-2:])))

    @property
    def _dtype(self) -> torch.dtype:
        """Weights of half precision are given in float32."""
        return torch.promote_types(self._call.dtype, torch.float32)

    def _cast(self, table: Tensor) -> Tensor:
        return table.to(self._dtype) if table.is_floating_point() else table

    def _check_fresh(self) -> None:
        """Raise if a tensor of the call is no longer what it was."""
        if self._versions is None or torch.compiler.is_compiling():
            return
        for (name, known), (_, now) in zip(self._versions, record_versions(self._call) or (), strict=False):
            if known != now:
                expected, fix = "the tensors of the call as they were", "ask before they are changed, or attend again"
                raise StaleError(format_message("weights", f"a {name} that was changed since", expected, fix))

    def _reshape_lead(self, table: Tensor) -> Tensor:
        """Return the table with the lead axes that this handle shows."""
        return table if self._lead is None else table.reshape(*self._lead, *table.shape[-2:])


def record_versions(call: AttentionCall) -> list[tuple[str, tuple[int, int]]] | None:
    """Return how often each tensor of a call has been changed in place; None if torch does not count."""
    if torch.compiler.is_compiling() or torch.is_inference_mode_enabled():
        return None
    named = [("query", call.query), ("key", call.key), ("value", call.value)]
    for name, part in zip(PARTS, call.parts, strict=True):
        plain = type(part) is Softmax and type(part.temperature) is float
        if part is not None and type(part) not in TENSORLESS and not plain:
            named += zip(itertools.repeat(name), part.tensors())
    versions = []
    for name, tensor in named:
        if not tensor.is_inference():
            versions.append((name, (id(tensor), tensor._version)))  # cheaper than a list by one call
    return versions


def _compute_log_weights(
    call: AttentionCall, totals: RowTotals, start: int, stop: int, first: int, last: int
) -> Tensor:
    """Return the logarithms of these weights; −inf where the pair is not allowed."""
    scores, total, scale = _compute_scores(call, totals, start, stop, first, last)
    return (scores if scale == 1.0 else scores * scale) - total[..., None]


def _compute_scores(
    call: AttentionCall, totals: RowTotals, start: int, stop: int, first: int, last: int
) -> tuple[Tensor, Tensor, float]:
    """Return scores, the totals of their rows, and the factor that the scores still lack."""
    form, parts = totals.form, call.parts
    pairs = Pairs(call.queries, call.keys, rows=(start, stop), columns=(first, last), device=call.query.device)
    query, key = widen(form.query[..., start:stop, :]), widen(form.key[..., first:last, :])
    scores, total = query @ key.transpose(-1, -2), totals.total[..., start:stop]
    bias = build_mask_bias(parts, build_dense_bias(parts, scores, pairs), scores, pairs)
    if bias is None and isinstance(form.scale, float) and form.scale > 0:  # a positive factor does not change the order
        return scores, total, form.scale
    scores = scores * form.scale
    return scores if bias is None else scores + bias, total, 1.0


def _split_index(index: Any, shape: tuple[int, ...]) -> tuple[tuple[int, int], Any]:
    """Return the queries that an index needs, and the index of the same weights in a table of only these."""
    parts, queries = list(index) if isinstance(index, tuple) else [index], shape[-2]
    if not all(type(part) is int or isinstance(part, slice) or part is Ellipsis for part in parts):
        return (0, queries), index
    if parts.count(Ellipsis) == 1:
        place = parts.index(Ellipsis)
        parts[place : place + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    place = len(shape) - 2
    if not place < len(parts) <= len(shape) or Ellipsis in parts:
        return (0, queries), index  # all queries, or too many axes, for which torch raises
    chosen = parts[place]
    found = range(queries)[chosen] if isinstance(chosen, slice) else (range(queries)[chosen],)
    if not found or (isinstance(chosen, slice) and found.step != 1):  # type: ignore[union-attr]
        return (0, queries), index
    parts[place] = slice(None) if isinstance(chosen, slice) else 0
    return (found[0], found[-1] + 1), tuple(parts)


def _check_step(name: str, part: slice) -> slice:
    if part.step not in (None, 1):
        raise wrong(name, f"a step of {part.step}", "a step of 1", "take the tile and index it")
    return part
