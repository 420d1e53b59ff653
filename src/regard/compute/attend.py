"""The operator that computes all attention."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from regard.algebra.aggregates import Aggregate, Soft
from regard.algebra.biases import Bias
from regard.algebra.foreign_keywords import explain_call
from regard.algebra.foreign_names import missing_result_error
from regard.algebra.masks import Causal, Full, Mask
from regard.algebra.masks.lengths import resolve_query_lengths
from regard.algebra.normalizers import Normalizer, Softmax
from regard.algebra.parts import AttentionCall, NumericalHazard, Parts
from regard.algebra.scores import Dot, ScaledDot, Score
from regard.algebra.shapes import Float, GroupedKeys, GroupedValues, Output, Queries, Tensor
from regard.compute.backends import BACKENDS, BackendResult
from regard.compute.checks import LeadError, check
from regard.compute.kernels import native, noise
from regard.compute.kernels.native import tensor_memory
from regard.compute.names import resolve_names
from regard.compute.notebook import build_bundle, render_html
from regard.compute.planning import AUTO, MOST_PLANS, BackendName, Plan, plan_call
from regard.compute.shield import FiniteInputs, shield
from regard.compute.watchers import WATCHERS, notify_watchers, pause_watchers
from regard.compute.weights import Weights
from regard.errors import wrong_kind

SCORE, MASK, NORMALIZER, AGGREGATE = ScaledDot(), Full(), Softmax(), Soft()
_checked_plans: dict[object, "CheckedPlan"] = {}


class AttentionResult(NamedTuple):
    """The output of attention and a handle on its weights: `output, weights = attend(query, key, value)`."""

    output: Output
    weights: Weights

    @property
    def log_prob(self) -> Float[Tensor, "*lead query"] | None:
        """The log-probability of the keys that a random aggregate chose; None after others."""
        return self.weights.log_prob

    @property
    def plan(self) -> Plan:
        """The plan by which it was computed."""
        return self.weights.plan

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name.startswith("_") else missing_result_error(name)

    def __add__(self, other: object) -> Any:
        raise wrong_kind("result", "output and weights", "one of them in a sum", "write x + attend(…).output")

    def __radd__(self, other: object) -> Any:
        return self + other

    def _repr_html_(self) -> str:
        return render_html(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Mapping[str, object]:
        return build_bundle(self)


class CheckedPlan(NamedTuple):
    """The lead axes of a call's output, and its plan."""

    lead: tuple[int, ...]
    plan: Plan


@explain_call
def attend(  # noqa: PLR0913  # the parts of the algebra, each with its default
    query: Queries,
    key: GroupedKeys,
    value: GroupedValues,
    *,
    score: Score | str = SCORE,
    bias: Bias | str | None = None,
    mask: Mask | str | None = MASK,
    normalizer: Normalizer | str = NORMALIZER,
    aggregate: Aggregate | str = AGGREGATE,
    dropout: float = 0.0,
    backend: BackendName = AUTO,
) -> AttentionResult:
    r"""Score the queries against the keys, normalize under a mask, average the values.

    $$ o_i = \sum_j w_{ij} v_j, \qquad w = \mathrm{aggregate}(\mathrm{normalizer}(\mathrm{score}(q, k) + \mathrm{bias},
    \mathrm{mask})) $$

    Every combination of parts runs, by the fastest backend (`plan` says which, and why) or by the one that is named,
    which computes it or raises. A query that may not see any key gives zeros. A part without parameters may be given by
    its name: `score="gaussian"`. If there are fewer heads of keys than of queries, heads in a row share those of a
    group (grouped and multi-query attention). `dropout` is the rate to apply now: pass 0 in evaluation.

    >>> from regard import Causal, Gaussian
    >>> x = torch.arange(3.0)[:, None]
    >>> attend(x, x, x, score=Gaussian(bandwidth=0.1), mask=Causal()).output.flatten()
    tensor([0., 1., 2.])
    >>> output, weights = attend(x, x, x, score="gaussian", normalizer="sparsemax", mask="causal")
    """
    parts = _resolve_parts((score, bias, MASK if mask is None else mask, normalizer, aggregate), query, key, value)
    if isinstance(query, Tensor) and query.is_floating_point() and is_autocast_on(query.device.type):
        return _attend_without_autocast(parts, query, key, value, dropout, backend)
    try:
        lead, plan = check_and_plan(parts, query, key, value, dropout, backend)
    except LeadError:
        if count_group_heads(query, key, value) < 2:
            raise
        return _attend_by_group(parts, query, key, value, dropout, backend)
    seed = noise.draw_seed(query.device) if dropout or parts.aggregate.random else None
    return _build_result(run_plan(AttentionCall(parts, query, key, value, dropout, seed), lead, plan, backend), lead)


def _resolve_parts(given: tuple[Any, ...], query: Tensor, key: Tensor, value: Tensor) -> Parts:
    """Return the parts that were given or named, and a mask whose lengths are those of these queries."""
    parts = Parts(*given)
    if str in map(type, given):
        parts = resolve_names(parts, query, key, value)
    if type(parts.mask) not in (Full, Causal) and _have_one_shape(query, key, value) and isinstance(parts.mask, Mask):
        axes = max(query.dim(), key.dim(), value.dim()) - 2
        parts = parts._replace(mask=resolve_query_lengths(parts.mask, axes, query))
    return parts


def count_group_heads(query: Tensor, key: Tensor, value: Tensor) -> int:
    """Return how many heads of the query share each head of the keys and values; 0 if they do not."""
    if min(query.dim(), key.dim(), value.dim()) < 3 or key.shape[-3] != value.shape[-3]:
        return 0
    times, rest = divmod(query.shape[-3], key.shape[-3])
    return 0 if rest else times


def _attend_by_group(
    parts: Parts, query: Tensor, key: Tensor, value: Tensor, dropout: float, backend: BackendName
) -> AttentionResult:
    """Attend with heads that share keys: on an axis that the keys broadcast over if all heads are treated alike.

    A part with a number for each head needs heads on one axis: keys and values are then repeated. So does anything
    random, so that its numbers do not depend on how heads are laid out.
    """
    times, mask = count_group_heads(query, key, value), parts.mask
    alike = parts.uniform and not any(leaf.lead[-1:] > (1,) for leaf in mask.leaves())
    if not alike or dropout or parts.aggregate.random:
        key, value = (tensor.repeat_interleave(times, dim=-3) for tensor in (key, value))
        return attend(query, key, value, **parts._asdict(), dropout=dropout, backend=backend)
    options = parts._replace(mask=mask.add_head_axis())._asdict()
    query, key, value = query.unflatten(-3, (-1, times)), key.unsqueeze(-3), value.unsqueeze(-3)
    with pause_watchers():
        output, weights = attend(query, key, value, **options, backend=backend)
    weights = weights.merge_heads()
    if not torch.compiler.is_compiling() and WATCHERS.get():
        notify_watchers(weights)
    return AttentionResult(output.flatten(-4, -3), weights)


def is_autocast_on(device: str) -> bool:
    """Return whether torch.autocast is on."""
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def _attend_without_autocast(
    parts: Parts, query: Tensor, key: Tensor, value: Tensor, dropout: float, backend: BackendName
) -> AttentionResult:
    """Attend in the dtype of the query: torch.autocast would change it half way, operation by operation."""
    both = [t.to(query.dtype) if isinstance(t, Tensor) and t.is_floating_point() else t for t in (key, value)]
    with torch.autocast(query.device.type, enabled=False):
        return attend(query, *both, **parts.cast(query.dtype)._asdict(), dropout=dropout, backend=backend)


class Computation(NamedTuple):
    """A call as it was computed in the end."""

    call: AttentionCall
    result: BackendResult
    plan: Plan
    finite: FiniteInputs | None


def run_plan(call: AttentionCall, lead: tuple[int, ...], plan: Plan, backend: BackendName) -> Computation:
    """Shield hidden content and run the plan; if it turns out to lose digits, make a more careful one and run that."""
    chosen, finite, dtype = BACKENDS[plan.backend], None, call.value.dtype
    if chosen.reads_hidden_keys:
        half, centered = chosen.sums_half_in_float32, plan.forms.centers_keys
        finite = shield(call, half_in_float32=half, centers_keys=centered)
        call = call._replace(key=finite.key, value=finite.value)
        plan = replan(call, lead, backend, "range") if finite.huge else plan
    while True:
        precision = plan.precision
        cast = call if precision is None else call.cast(precision)
        result = BACKENDS[plan.backend].run(cast)
        if not result.lost_digits:
            break
        can_widen = precision != torch.float64 and dtype != torch.float64
        plan = replan(call, lead, backend, "digits" if can_widen else "range")
    if precision is not None:
        log_prob = None if result.log_prob is None else result.log_prob.to(torch.promote_types(dtype, torch.float32))
        result = result._replace(output=result.output.to(dtype), log_prob=log_prob)
    return Computation(cast, result, plan, finite)


def replan(call: AttentionCall, lead: tuple[int, ...], backend: BackendName, hazard: NumericalHazard) -> Plan:
    """Return the plan of a call whose content would overflow or lose digits."""
    return plan_call(call.parts, lead, (call.query, call.key, call.value), call.dropout, backend, hazard)


def _build_result(computed: Computation, lead: tuple[int, ...]) -> AttentionResult:
    """Return the result with all lead axes and with NaN for queries that see broken input; notify the watchers."""
    output, log_prob, finite = computed.result.output, computed.result.log_prob, computed.finite
    if finite is not None and finite.nan_outputs is not None:
        output = output.masked_fill(finite.nan_outputs[..., None], float("nan"))
    if output.shape[:-2] != lead:
        output = output.expand(*lead, *output.shape[-2:])
    if log_prob is not None and log_prob.shape[:-1] != lead:
        log_prob = log_prob.expand(*lead, log_prob.shape[-1])
    nan_rows = None if finite is None else finite.nan_weights
    weights = Weights(computed.call, computed.result, computed.plan, log_prob, nan_rows)
    if not torch.compiler.is_compiling() and WATCHERS.get():  # a compiled graph has none
        notify_watchers(weights)
    return AttentionResult(output, weights)


def check_and_plan(
    parts: Parts, query: Tensor, key: Tensor, value: Tensor, dropout: float, backend: BackendName
) -> CheckedPlan:
    """Check the call and plan it. If the parts hold no tensors, do so once for all calls that are alike: it is slow."""
    signature: object = None
    if _is_plain(parts) and _have_one_shape(query, key, value):
        sizes = query.shape, key.shape, value.shape
        kinds = query.dtype, key.dtype, value.dtype, query.device, key.device, value.device
        options = type(parts.score), type(parts.mask), dropout, backend, torch.is_grad_enabled()
        signature = options, sizes, kinds, native.get_loaded() is None, tensor_memory.is_intercepted()
        known = _checked_plans.get(signature)
        if known is not None:
            return known
    lead = check(parts, query, key, value, dropout)
    checked = CheckedPlan(lead, plan_call(parts, lead, (query, key, value), dropout, backend))
    if signature is not None:
        if len(_checked_plans) >= MOST_PLANS:
            _checked_plans.clear()
        _checked_plans[signature] = checked
    return checked


def _have_one_shape(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Return whether these are tensors, and not nested ones. Written out, because it is part of every call."""
    tensors = isinstance(query, Tensor) and isinstance(key, Tensor) and isinstance(value, Tensor)
    return tensors and not (query.is_nested or key.is_nested or value.is_nested)


def _is_plain(parts: Parts) -> bool:
    """Return whether only the types of the parts matter: they have no settings and no tensors."""
    score, bias, mask, normalizer, aggregate = parts
    plain = type(score) in (Dot, ScaledDot) and type(mask) in (Full, Causal) and bias is None
    return plain and normalizer is NORMALIZER and aggregate is AGGREGATE and not tensor_memory.is_traced()
