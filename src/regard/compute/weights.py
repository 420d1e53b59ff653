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
from regard.algebra.masks import Causal, Full, Mask
from regard.algebra.normalizers import Softmax
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall, Parts
from regard.algebra.scores import Dot, ScaledDot
from regard.algebra.shapes import Bool, Float, Tensor, widen
from regard.algebra.terms import find_numbers
from regard.compute.indices import check_step, split_index
from regard.compute.kernels.summary import RowSummary, TopWeights, summarize, summarize_weights
from regard.compute.lowering.backend import BackendResult, RowTotals
from regard.compute.lowering.fuse import build_dense_bias, build_mask_bias
from regard.compute.lowering.precision import loses_difference
from regard.compute.lowering.spans import choose_rows_per_block
from regard.compute.notebook import NotebookDisplay
from regard.compute.planning import Plan
from regard.compute.versions import CallVersion, find_mask_numbers
from regard.errors import wrong

TENSORS = tuple(f"tensor of the {name}" for name in Parts._fields)
NUMBERS = tuple(f"number of the {name}" for name in Parts._fields)
FIXED = (Dot, ScaledDot, Full, Causal, Soft)  # they hold neither tensors nor numbers: skipped at each call

BLOCK = 2**20  # scores in a block: what a second cache can hold


class WeightsSummary(NamedTuple):
    """Entropy, received mass and largest weights, from one pass over the weights."""

    entropy: Float[Tensor, "*lead query"]
    received: Float[Tensor, "*lead key"]
    top: TopWeights


class Weights(NotebookDisplay):
    """A handle on the weights; nothing is computed before it is asked for. Dropout is not in them.

    `dense()` and indexing have a gradient; the others have none. They are the weights of the call that made them: if
    its tensors or a number of its parts were changed since, by an optimizer for example, asking raises a `StaleError`.
    Changes that torch does not count are not noticed: those through `.data` or NumPy, and all in inference mode. A copy
    (`copy.deepcopy`, `pickle`) has tensors of its own.

    >>> from regard import attend
    >>> q, k, v = torch.zeros(1, 2), torch.eye(2), torch.eye(2)
    >>> output, weights = attend(q, k, v)
    >>> weights.dense(), weights[0, 1], weights.numpy().shape
    (tensor([[0.5000, 0.5000]]), tensor(0.5000), (1, 2))
    """

    __slots__ = ("_lead", "_nan_rows", "_version", "call", "log_prob", "plan", "totals")
    call: AttentionCall  # that was computed
    plan: Plan  # by which it was computed
    log_prob: Float[Tensor, "*lead query"] | None  # of the keys that a random aggregate chose; None after others
    totals: RowTotals | None  # what a fused kernel left behind; None after others

    def __init__(
        self,
        call: AttentionCall,
        result: BackendResult,
        plan: Plan,
        log_prob: Float[Tensor, "*lead query"] | None = None,
        nan_rows: Bool[Tensor, "*#lead query"] | None = None,
    ) -> None:
        self.call, self._nan_rows, self._version = call, nan_rows, record_version(call)
        self.plan, self.log_prob = plan, log_prob
        self._lead: tuple[int, ...] | None = None
        known = result.form is not None and result.total is not None
        self.totals = RowTotals(result.form, result.total) if known else None  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return (*lead, queries, keys), with the lead axes of the output, even if only values or mask have them."""
        return (*(self._lead or self.call.lead), self.call.queries, self.call.keys)

    def merge_heads(self) -> "Weights":
        """Return the same with the last two lead axes as one: groups and the heads of each become heads."""
        other = copy.copy(self)
        *rest, groups, heads = self.shape[:-2]
        other._lead = (*rest, groups * heads)
        other.log_prob = None if self.log_prob is None else self.log_prob.flatten(-3, -2)
        return other

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        """Return `dense()[index]`; if some queries are chosen by a number or a slice, only their rows are computed."""
        rows, rest = split_index(index, self.shape)
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

    def __getstate__(self) -> dict[str, Any]:
        self._check_fresh()
        return {name: getattr(self, name) for name in self.__slots__ if name != "_version"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._version = record_version(self.call)

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
        return self._compute_rows(0, self.call.queries)

    def tile(self, rows: slice, columns: slice) -> Float[Tensor, "*lead row column"]:
        """Return the weights of some queries and keys; if the kernel left exact totals, only they are computed."""
        start, stop, _ = check_step("rows", rows).indices(self.call.queries)
        first, last, _ = check_step("columns", columns).indices(self.call.keys)
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
        if not 1 <= k <= self.call.keys:
            raise wrong("k", k, f"1 … keys={self.call.keys}", "ask for no more keys than there are")
        self._check_fresh()
        entropies, masses, tops, _ = zip(*self._iterate_blocks(k), strict=True)
        received = functools.reduce(torch.Tensor.add_, masses)
        top = TopWeights(*(torch.cat(blocks, -2) for blocks in zip(*tops, strict=True)))
        return WeightsSummary(torch.cat(entropies, -1), received, top)

    def _iterate_blocks(self, k: int) -> Iterator[RowSummary]:
        """Yield summaries of whole rows, a block of queries at a time."""
        queries, keys = self.call.queries, self.call.keys
        size = queries
        if self.call.parts.normalizer.form != "sequential":
            depth = self.call.query.shape[-1] if self.call.parts.score.form == "pointwise" else 1
            size = choose_rows_per_block(math.prod(self.shape[:-2]) * keys * depth, queries, budget=BLOCK)
        for start in range(0, queries, size):
            with torch.no_grad():
                yield self._summarize_block(start, min(queries, start + size), k)

    def _summarize_block(self, start: int, stop: int, k: int) -> RowSummary:
        if self.totals is None or self._nan_rows is not None:
            return summarize_weights(self._compute_rows(start, stop), k)
        scores, total, scale = _compute_scores(self.call, self.totals, start, stop, 0, self.call.keys)
        lead = torch.broadcast_shapes(scores.shape[:-2], total.shape[:-1])
        scores, total = scores.expand(*lead, *scores.shape[-2:]), total.expand(*lead, total.shape[-1])
        if self._lead is not None:
            scores, total = self._reshape_lead(scores), total.reshape(*self._lead, total.shape[-1])
        entropy, received, (largest, keys), total = summarize(scores, total, scale, k)
        entropy, received, largest, total = map(self._cast, (entropy, received, largest, total))
        return RowSummary(entropy, received, TopWeights(largest, keys), total)

    def _compute_tile(self, start: int, stop: int, first: int, last: int) -> Tensor:
        totals = self.totals
        if totals is None or self._nan_rows is not None or loses_difference(totals.total[..., start:stop]):
            return self._compute_rows(start, stop)[..., first:last]
        table = _compute_log_weights(self.call, totals, start, stop, first, last)
        return self._cast(self._reshape_lead(table.exp_()))

    def _compute_rows(self, start: int, stop: int) -> Tensor:
        """Compute whole rows by the definition. Rows of a sequential normalizer need all rows before them."""
        call, sequential = self.call, self.call.parts.normalizer.form == "sequential"
        rows = (0, call.queries) if sequential else (start, stop)
        pairs = Pairs(call.queries, call.keys, rows=rows, device=call.query.device)
        query = call.query[..., rows[0] : rows[1], :]
        score = functools.partial(compute_wide_score, call.parts.score.stream)
        table = weigh(call.parts, score, query, call.key, pairs, seed=call.seed).weights
        table = table[..., start:stop, :] if sequential else table
        if self._nan_rows is not None:
            table = table.masked_fill(self._nan_rows[..., start:stop, None], float("nan"))
        return self._cast(self._reshape_lead(table.expand(*self.call.lead, *table.shape[-2:])))

    @property
    def _dtype(self) -> torch.dtype:
        """Weights of half precision are given in float32."""
        return torch.promote_types(self.call.dtype, torch.float32)

    def _cast(self, table: Tensor) -> Tensor:
        return table.to(self._dtype)

    def _check_fresh(self) -> None:
        """Raise if something of the call is no longer what it was."""
        now = record_version(self.call)
        if self._version is not None and now is not None:
            self._version.compare(now)

    def _reshape_lead(self, table: Tensor) -> Tensor:
        """Return the table with the lead axes that this handle shows."""
        return table if self._lead is None else table.reshape(*self._lead, *table.shape[-2:])


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


def record_version(call: AttentionCall) -> CallVersion | None:
    """Return what a call was computed from; None while a graph is traced, in which nothing is compared."""
    if torch.compiler.is_compiling():
        return None
    counted = not torch.is_inference_mode_enabled()
    named, numbers = [("query", call.query), ("key", call.key), ("value", call.value)], []
    for tensor_name, number_name, part in zip(TENSORS, NUMBERS, call.parts, strict=True):
        if part is None or type(part) in FIXED:
            continue
        if type(part) is Softmax and type(part.temperature) is float:  # the usual one, without a search
            numbers.append((number_name, [part.temperature]))
            continue
        numbers.append((number_name, find_mask_numbers(part) if isinstance(part, Mask) else find_numbers(part)))
        if counted:
            named += zip(itertools.repeat(tensor_name), part.tensors())
    if not counted:
        return CallVersion(None, numbers)
    versions = []
    for name, tensor in named:
        if not tensor.is_inference():
            versions.append((name, (id(tensor), tensor._version, tensor.dtype)))  # cheaper than a list by one call
    return CallVersion(versions, numbers)
