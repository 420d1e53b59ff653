"""The one operator."""

from typing import Literal, NamedTuple

import torch

from regard.aggregates import Reading, Soft
from regard.backends import RUNS, Result
from regard.biases import Bias
from regard.checks import check
from regard.lowering import Backend, Plan, lower
from regard.lowering.precision import is_traced
from regard.masks import Causal, Full, Mask
from regard.normalizers import Normalizer, Softmax
from regard.numerics import few, native, noise
from regard.numerics.native import gate
from regard.parts import Call, Care, Facts, Parts
from regard.scores import Dot, ScaledDot, Score
from regard.shapes import Float, Output, Queries, Tensor, Values, WideKeys
from regard.shield import shield
from regard.watching import tell
from regard.weights import Weights

SCORE, MASK, NORMALIZER, AGGREGATE = ScaledDot(), Full(), Softmax(), Soft()
_plans: dict[object, Plan] = {}
_understood: dict[object, "Understood"] = {}
MOST_PLANS = 4096


class Attended(NamedTuple):
    """What attending gives: one shape, always."""

    output: Output
    weights: Weights
    log_prob: Float[Tensor, "*lead query"] | None
    plan: Plan


class Understood(NamedTuple):
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
    aggregate: Reading = AGGREGATE,
    dropout: float = 0.0,
    backend: Backend | Literal["auto"] = "auto",
) -> Attended:
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
    if isinstance(query, Tensor) and query.is_floating_point() and casts_by_itself(query.device.type):
        with torch.autocast(query.device.type, enabled=False):
            return _attend_cast(parts, query, key, value, dropout, backend)
    lead, plan = understand(parts, query, key, value, dropout, backend)
    seed = noise.draw_seed(query.device) if dropout or aggregate.random else None
    call, blind, exposed = Call(parts, query, key, value, dropout, seed), None, None
    if plan.backend != "few":  # which reads nothing that is hidden
        key, value, exposed, blind, huge = shield(call, plan.backend)
        call = Call(parts, query, key, value, dropout, seed)
        plan = replan(call, lead, backend, "range") if huge else plan
    computed = compute(call, lead, plan, backend)
    output, log_prob = computed.result.output, computed.result.log_prob
    if exposed is not None:
        output = output.masked_fill(exposed[..., None], float("nan"))
    if output.shape[:-2] != lead:
        output = output.expand(*lead, *output.shape[-2:])
    if log_prob is not None and log_prob.shape[:-1] != lead:
        log_prob = log_prob.expand(*lead, log_prob.shape[-1])
    weights = Weights(computed.call, computed.result, blind)
    if not torch.compiler.is_compiling():
        tell(weights)
    return Attended(output, weights, log_prob, computed.plan)


def casts_by_itself(device: str) -> bool:
    """Return whether torch.autocast is on."""
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def _attend_cast(
    parts: Parts, query: Tensor, key: Tensor, value: Tensor, dropout: float, backend: Backend | Literal["auto"]
) -> Attended:
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


class Computed(NamedTuple):
    """A call as it was computed in the end."""

    call: Call
    result: Result
    plan: Plan


def compute(call: Call, lead: tuple[int, ...], plan: Plan, backend: Backend | Literal["auto"]) -> Computed:
    """Run the plan; where it turns out to lose digits, make a more careful one and run that."""
    own = call if plan.precision is None else call.cast(plan.precision)
    result = RUNS[plan.backend](own)
    if result.lost_digits:
        wider = plan.precision != torch.float64 and call.value.dtype != torch.float64
        return compute(call, lead, replan(call, lead, backend, "digits" if wider else "range"), backend)
    if plan.precision is not None:
        dtype = call.value.dtype
        log_prob = None if result.log_prob is None else result.log_prob.to(torch.promote_types(dtype, torch.float32))
        result = result._replace(output=result.output.to(dtype), log_prob=log_prob)
    return Computed(own, result, plan)


def replan(call: Call, lead: tuple[int, ...], backend: Backend | Literal["auto"], care: Care) -> Plan:
    """Return the plan of a call whose content asks for more care."""
    facts = facts_of(lead, call.query, call.key, call.value, call.dropout)
    return plan_for(call.parts, facts._replace(care=care), backend)


def understand(
    parts: Parts, query: Tensor, key: Tensor, value: Tensor, dropout: float, backend: Backend | Literal["auto"]
) -> Understood:
    """Check and plan. Where the parts hold no tensor, once for all calls that are alike: it takes a while."""
    alike: object = None
    if _plain(parts) and all(isinstance(tensor, Tensor) and not tensor.is_nested for tensor in (query, key, value)):
        sizes = query.shape, key.shape, value.shape
        kinds = query.dtype, key.dtype, value.dtype, query.device, key.device, value.device
        given = type(parts.score), type(parts.mask), dropout, backend, torch.is_grad_enabled()
        alike = given, sizes, kinds, native.loaded() is None
        known = _understood.get(alike)
        if known is not None:
            return known
    lead = check(parts, query, key, value, dropout)
    known = Understood(lead, plan_for(parts, facts_of(lead, query, key, value, dropout), backend))
    if alike is not None:
        if len(_understood) >= MOST_PLANS:
            _understood.clear()
        _understood[alike] = known
    return known


def _plain(parts: Parts) -> bool:
    """Whether nothing in the parts but their types counts."""
    score, bias, mask, normalizer, aggregate = parts
    plain = type(score) in (Dot, ScaledDot) and type(mask) in (Full, Causal) and bias is None
    return plain and normalizer is NORMALIZER and aggregate is AGGREGATE and not is_traced()


def facts_of(lead: tuple[int, ...], query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Facts:
    """The facts of a call."""
    grad, traced = torch.is_grad_enabled(), torch.compiler.is_compiling()
    mapped = not traced and gate.is_mapped()
    if not (traced or grad) and query.shape[-2] <= few.MOST:
        native.library(build=False)  # which takes it from the cache, if it is there
    return Facts(
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
        "" if traced else native.state(),
    )


def plan_for(parts: Parts, facts: Facts, backend: Backend | Literal["auto"]) -> Plan:
    """The plan, remembered: a decoder asks for the same one at every step."""
    if facts.traced:
        return lower(parts, facts, backend=backend)
    key = parts.key, facts, backend
    plan = _plans.get(key)
    if plan is None:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        plan = _plans[key] = lower(parts, facts, backend=backend)
    return plan
