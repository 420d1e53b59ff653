"""The one operator."""

from typing import Literal, NamedTuple

import torch

from regard.aggregates import Reading, Soft
from regard.backends import RUNS
from regard.biases import Bias
from regard.checks import check
from regard.lowering import Backend, Plan, lower
from regard.masks import Causal, Full, Mask
from regard.normalizers import Normalizer, Softmax
from regard.numerics import noise
from regard.parts import Call, Facts, Parts
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
    lead, plan = understand(parts, query, key, value, dropout, backend)
    exposed = None
    if plan.backend != "few":  # which reads nothing that is hidden
        key, value, exposed = shield(parts, query.shape[-2], key, value)
    seed = noise.draw_seed(query.device) if dropout or aggregate.random else None
    call = Call(parts, query, key, value, dropout, seed)
    result = RUNS[plan.backend](call)
    output = result.output
    if exposed is not None:
        output = output.masked_fill(exposed[..., None], float("nan"))
    log_prob = result.log_prob
    if output.shape[:-2] != lead:
        output = output.expand(*lead, *output.shape[-2:])
    if log_prob is not None and log_prob.shape[:-1] != lead:
        log_prob = log_prob.expand(*lead, log_prob.shape[-1])
    weights = Weights(call, result)
    if not torch.compiler.is_compiling():
        tell(weights)
    return Attended(output, weights, log_prob, plan)


def understand(
    parts: Parts, query: Tensor, key: Tensor, value: Tensor, dropout: float, backend: Backend | Literal["auto"]
) -> Understood:
    """Check and plan. Where the parts hold no tensor, once for all calls that are alike: it takes a while."""
    alike: object = None
    if _plain(parts) and all(isinstance(tensor, Tensor) and not tensor.is_nested for tensor in (query, key, value)):
        sizes = query.shape, key.shape, value.shape
        kinds = query.dtype, key.dtype, value.dtype, query.device, key.device, value.device
        given = type(parts.score), type(parts.mask), dropout, backend, torch.is_grad_enabled()
        alike = given, sizes, kinds
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
    return plain and normalizer is NORMALIZER and aggregate is AGGREGATE and not torch.compiler.is_compiling()


def facts_of(lead: tuple[int, ...], query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Facts:
    """The facts of a call."""
    return Facts(
        lead,
        query.shape[-2],
        key.shape[-2],
        query.shape[-1],
        value.shape[-1],
        query.dtype,
        query.device.type,
        dropout > 0,
        torch.is_grad_enabled(),
        torch.compiler.is_compiling(),
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
