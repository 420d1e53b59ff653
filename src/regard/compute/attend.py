"""The one operator."""

from typing import Literal, NamedTuple

import torch

from regard.algebra.aggregates import Aggregate, Soft
from regard.algebra.biases import Bias
from regard.algebra.masks import Causal, Full, Mask
from regard.algebra.normalizers import Normalizer, Softmax
from regard.algebra.parts import AttentionCall, CallFacts, NumericalHazard, Parts
from regard.algebra.scores import Dot, ScaledDot, Score
from regard.algebra.shapes import Float, Output, Queries, Tensor, Values, WideKeys
from regard.compute.backends import RUNS, BackendResult
from regard.compute.checks import check
from regard.compute.kernels import few_queries, native, noise
from regard.compute.kernels.native import tensor_memory
from regard.compute.planning import Backend, Plan, make_plan
from regard.compute.lowering.precision import is_traced
from regard.compute.shield import shield
from regard.compute.watchers import notify_watchers
from regard.compute.weights import Weights

SCORE, MASK, NORMALIZER, AGGREGATE = ScaledDot(), Full(), Softmax(), Soft()
_plans: dict[object, Plan] = {}
_checked_plans: dict[object, "CheckedPlan"] = {}
MOST_PLANS = 4096


class AttentionResult(NamedTuple):
    """What attending gives: one shape, always."""

    output: Output
    weights: Weights
    log_prob: Float[Tensor, "*lead query"] | None
    plan: Plan


class CheckedPlan(NamedTuple):
    """What checking and planning a call found: the lead axes of its output, and the plan."""

    lead: tuple[int, ...]
    plan: Plan


def attend(  # noqa: PLR0913  # the parts of the algebra, each with its default
    query: Queries,
    key: WideKeys,
    value: Values,
    *,
    score: Score = SCORE,
    bias: Bias | None = None,
    mask: Mask = MASK,
    normalizer: Normalizer = NORMALIZER,
    aggregate: Aggregate = AGGREGATE,
    dropout: float = 0.0,
    backend: Backend | Literal["auto"] = "auto",
) -> AttentionResult:
    r"""Score the queries against the keys, normalize under a mask, average the values.

    $$ o_i = \sum_j w_{ij} v_j, \qquad w = \mathrm{aggregate}(\mathrm{normalizer}(\mathrm{score}(q, k) + \mathrm{bias},
    \mathrm{mask})) $$

    Every combination of parts runs. The fastest way to compute it is chosen (`plan` says which, and why), unless a
    backend is asked for by name, which then computes it or raises. A query that may see no key gives zeros.
    `dropout` is the rate to apply now: pass 0 in evaluation.

    >>> from regard import Causal, Gaussian
    >>> x = torch.arange(3.0)[:, None]
    >>> attend(x, x, x, score=Gaussian(width=10.0), mask=Causal()).output.flatten()
    tensor([0., 1., 2.])
    """
    parts = Parts(score, bias, mask, normalizer, aggregate)
    if isinstance(query, Tensor) and query.is_floating_point() and is_autocast_on(query.device.type):
        with torch.autocast(query.device.type, enabled=False):
            return _attend_without_autocast(parts, query, key, value, dropout, backend)
    lead, plan = check_and_plan(parts, query, key, value, dropout, backend)
    seed = noise.draw_seed(query.device) if dropout or aggregate.random else None
    call, blind, exposed = AttentionCall(parts, query, key, value, dropout, seed), None, None
    if plan.backend != "few_queries":  # which reads nothing that is hidden
        key, value, exposed, blind, huge = shield(call, plan.backend)
        call = AttentionCall(parts, query, key, value, dropout, seed)
        plan = replan(call, lead, backend, "range") if huge else plan
    computed = run_plan(call, lead, plan, backend)
    output, log_prob = computed.result.output, computed.result.log_prob
    if exposed is not None:
        output = output.masked_fill(exposed[..., None], float("nan"))
    if output.shape[:-2] != lead:
        output = output.expand(*lead, *output.shape[-2:])
    if log_prob is not None and log_prob.shape[:-1] != lead:
        log_prob = log_prob.expand(*lead, log_prob.shape[-1])
    weights = Weights(computed.call, computed.result, blind)
    if not torch.compiler.is_compiling():
        notify_watchers(weights)
    return AttentionResult(output, weights, log_prob, computed.plan)


def is_autocast_on(device: str) -> bool:
    """Return whether torch.autocast is on."""
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def _attend_without_autocast(
    parts: Parts, query: Tensor, key: Tensor, value: Tensor, dropout: float, backend: Backend | Literal["auto"]
) -> AttentionResult:
    """Attend in the dtype of the query: torch.autocast would change it half way, operation by operation."""
    both = [t.to(query.dtype) if isinstance(t, Tensor) and t.is_floating_point() else t for t in (key, value)]
    score, bias, mask, normalizer, aggregate = parts.cast(query.dtype)
    return attend(
        query,
        *both,
        score=score,
        bias=bias,
        mask=mask,
        normalizer=normalizer,
        aggregate=aggregate,
        dropout=dropout,
        backend=backend,
    )


class Computation(NamedTuple):
    """A call as it was computed in the end."""

    call: AttentionCall
    result: BackendResult
    plan: Plan


def run_plan(call: AttentionCall, lead: tuple[int, ...], plan: Plan, backend: Backend | Literal["auto"]) -> Computation:
    """Run the plan; where it turns out to lose digits, make a more careful one and run that."""
    own = call if plan.precision is None else call.cast(plan.precision)
    result = RUNS[plan.backend](own)
    if result.lost_digits:
        wider = plan.precision != torch.float64 and call.value.dtype != torch.float64
        return run_plan(call, lead, replan(call, lead, backend, "digits" if wider else "range"), backend)
    if plan.precision is not None:
        dtype = call.value.dtype
        log_prob = None if result.log_prob is None else result.log_prob.to(torch.promote_types(dtype, torch.float32))
        result = result._replace(output=result.output.to(dtype), log_prob=log_prob)
    return Computation(own, result, plan)


def replan(
    call: AttentionCall, lead: tuple[int, ...], backend: Backend | Literal["auto"], care: NumericalHazard
) -> Plan:
    """Return the plan of a call whose content asks for more care."""
    facts = collect_facts(lead, call.query, call.key, call.value, call.dropout)
    return find_plan(call.parts, facts._replace(hazard=care), backend)


def check_and_plan(
    parts: Parts, query: Tensor, key: Tensor, value: Tensor, dropout: float, backend: Backend | Literal["auto"]
) -> CheckedPlan:
    """Check and plan. Where the parts hold no tensor, once for all calls that are alike: it takes a while."""
    alike: object = None
    if _is_plain(parts) and all(isinstance(tensor, Tensor) and not tensor.is_nested for tensor in (query, key, value)):
        sizes = query.shape, key.shape, value.shape
        kinds = query.dtype, key.dtype, value.dtype, query.device, key.device, value.device
        given = type(parts.score), type(parts.mask), dropout, backend, torch.is_grad_enabled()
        alike = given, sizes, kinds, native.get_loaded() is None
        known = _checked_plans.get(alike)
        if known is not None:
            return known
    lead = check(parts, query, key, value, dropout)
    known = CheckedPlan(lead, find_plan(parts, collect_facts(lead, query, key, value, dropout), backend))
    if alike is not None:
        if len(_checked_plans) >= MOST_PLANS:
            _checked_plans.clear()
        _checked_plans[alike] = known
    return known


def _is_plain(parts: Parts) -> bool:
    """Whether nothing in the parts but their types counts."""
    score, bias, mask, normalizer, aggregate = parts
    plain = type(score) in (Dot, ScaledDot) and type(mask) in (Full, Causal) and bias is None
    return plain and normalizer is NORMALIZER and aggregate is AGGREGATE and not is_traced()


def collect_facts(lead: tuple[int, ...], query: Tensor, key: Tensor, value: Tensor, dropout: float) -> CallFacts:
    """The facts of a call."""
    grad, traced = torch.is_grad_enabled(), torch.compiler.is_compiling()
    mapped = not traced and tensor_memory.is_mapped()
    if not (traced or grad) and query.shape[-2] <= few_queries.MOST_QUERIES:
        native.load_library(build=False)  # which takes it from the cache, if it is there
    return CallFacts(
        lead,
        query.shape[-2],
        key.shape[-2],
        query.shape[-1],
        value.shape[-1],
        query.dtype,
        query.device.type,
        dropout > 0,
        grad,
        traced,
        mapped,
        "" if traced else native.describe_state(),
    )


def find_plan(parts: Parts, facts: CallFacts, backend: Backend | Literal["auto"]) -> Plan:
    """The plan, remembered: a decoder asks for the same one at every step."""
    if facts.traced:
        return make_plan(parts, facts, backend=backend)
    key = parts.plan_key, facts, backend
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = make_plan(parts, facts, backend=backend)
    return plan
