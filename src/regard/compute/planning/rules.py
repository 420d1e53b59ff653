"""The rules: pure functions of parts and facts. They look at no number in any tensor."""

from collections.abc import Callable
from typing import Literal

import torch

from regard.algebra.masks import Causal, Full, Window
from regard.algebra.masks.base import Mask
from regard.algebra.masks.composition import Intersection
from regard.algebra.parts import CallFacts, Parts
from regard.compute.kernels import few_queries
from regard.compute.planning.plan import BACKENDS, Backend, Plan
from regard.compute.planning.precision import choose_compute_dtype
from regard.compute.planning.reasons import build_steps
from regard.errors import PlanError, format_message, wrong

LARGE_TABLE = 2**24  # pairs; a float mask of them takes 64 MB, and blocks of queries need none of it
SMALL_TABLE = 2**14  # pairs of a bias that was one number for each key as long as there were few
FUSED = ("softmax", "softmax-plus-one", "local-p")
RANGE = "the numbers differ so much in size that only pairs taken one by one keep their digits"
MAPPED = "torch.func maps or differentiates the call, and cannot look into kernels and blocks"
UnsupportedReason = str | None


def make_plan(parts: Parts, facts: CallFacts, *, backend: Backend | Literal["auto"] = "auto") -> Plan:
    """The plan for these parts. A backend that is asked for by name and cannot compute them raises."""
    unseen = (facts.traced and parts.score.centers_keys) or (facts.mapped and facts.dtype == torch.float16)
    if unseen and facts.hazard == "none":  # the content cannot be looked at, so the worst is to be expected
        facts = facts._replace(hazard="range")
    if backend == "auto":
        chosen, because = choose_backend(parts, facts)
    elif backend in BACKENDS:
        chosen, because = backend, "it was asked for"
        refusal = UNSUPPORTED_REASONS[backend](parts, facts)
        if refusal is not None:
            fix = 'use backend="auto", which finds one that can'
            raise PlanError(format_message("backend", repr(backend), f"one that can compute this: {refusal}", fix))
    else:
        names = ", ".join(("auto", *BACKENDS))
        raise wrong("backend", repr(backend), f"one of {names}", 'use "auto"')
    precision = (
        None if facts.traced else choose_compute_dtype(facts.dtype, facts.hazard, cancels=parts.score.centers_keys)
    )
    return Plan(chosen, because, build_steps(parts, facts, chosen, precision), precision)


def choose_backend(parts: Parts, facts: CallFacts) -> tuple[Backend, str]:
    """The fastest backend that can, and what decided."""
    if explain_unsupported_linear(parts, facts) is None:
        return "linear", "the products can be reassociated, so that the cost is linear in the length"
    if facts.mapped:
        return "eager", MAPPED
    refusal = explain_unsupported_sdpa(parts, facts)
    if refusal is None:
        return choose_fused_backend(parts, facts)
    if parts.normalizer.form == "sequential":
        return "eager", "each row of the weights depends on the row before"
    if parts.normalizer.form == "rows" or parts.aggregate.form == "choice":
        return "rows", f"{refusal}; blocks of whole rows bound the memory"
    return "stream", f"{refusal}; blocks of queries bound the memory"


def choose_fused_backend(parts: Parts, facts: CallFacts) -> tuple[Backend, str]:
    """Among those that end in a fused kernel."""
    width = parts.mask.width
    if width is not None and facts.keys >= 512 and 4 * width <= facts.keys:
        keys = "the" if facts.traced else facts.keys
        return "local", f"a query sees at most {width} of {keys} keys, so only those are read"
    large = SMALL_TABLE if is_dense_only_by_length(parts, facts) else LARGE_TABLE
    if needs_table(parts, facts) and facts.queries * facts.keys > large:
        return "local", "a mask of this size would not be linear in the length, blocks of it are"
    if (
        explain_unsupported_few_queries(parts, facts) is None
        and facts.queries <= few_queries.MOST_QUERIES
        and not parts.mask.allows_all(facts.queries)
    ):
        return "few_queries", "a handful of queries wants no gradient, so that only the pairs that are allowed are read"
    if parts.normalizer.form == "local-p":
        return "sdpa", "it is two softmaxes of a dot product, with and without the Gaussian"
    return "sdpa", "it is a softmax of a dot product"


def is_dense_only_by_length(parts: Parts, facts: CallFacts) -> bool:
    """Whether the bias is written out only because there are so many keys: memory then stays linear, by blocks."""
    return needs_dense_bias(parts, facts.keys) and not needs_dense_bias(parts, 1)


def needs_table(parts: Parts, facts: CallFacts) -> bool:
    """Whether something must be written out for each pair."""
    free = parts.mask.columnwise or matches_causal_flag(parts.mask, facts)
    return not free or needs_dense_bias(parts, facts.keys) or parts.normalizer.form == "local-p"


def matches_causal_flag(mask: Mask, facts: CallFacts) -> bool:
    """Whether a kernel's own causal flag says the same (its first query sits on the first key)."""
    return type(mask) is Causal and facts.queries in (1, facts.keys)


def explain_unsupported_eager(parts: Parts, facts: CallFacts) -> UnsupportedReason:
    """The definition computes everything."""
    return None


def explain_unsupported_linear(parts: Parts, facts: CallFacts) -> UnsupportedReason:
    """Linear attention needs a row total of a dot form, and a mask that is a cut or a triangle."""
    if parts.normalizer.form != "row-total":
        return "only the row total can be reassociated"
    if facts.hazard == "range" or parts.score.centers_keys:
        return RANGE if facts.hazard == "range" else "a sum over keys would lose the digits of the score"
    if parts.score.form != "dot" or parts.bias is not None:
        return "the score has no dot form" if parts.score.form != "dot" else "a bias would have to be a feature"
    if not is_linear_mask(parts.mask):
        return "the mask is neither causal nor the same for all queries"
    return explain_unsupported_without_weights(parts, facts)


def is_linear_mask(mask: Mask) -> bool:
    """Whether running sums can follow it: some keys for all queries, or those up to the query, or both."""
    if type(mask) is Intersection:
        return all(is_linear_mask(part) for part in mask.parts)
    return mask.columnwise or type(mask) is Causal


def explain_unsupported_without_weights(parts: Parts, facts: CallFacts) -> UnsupportedReason:
    """What no kernel that hides the weights can do."""
    if parts.aggregate.form == "choice":
        return "a hard reading needs the weights themselves"
    return "dropout on weights needs the weights themselves" if facts.dropout else None


def explain_unsupported_sdpa(parts: Parts, facts: CallFacts) -> UnsupportedReason:
    """A fused kernel needs a softmax of a dot form, and gives no gradient to a mask."""
    if facts.hazard == "range":
        return RANGE
    if facts.mapped:
        return MAPPED
    if parts.score.form != "dot":
        return "the score has no dot form"
    if parts.normalizer.form not in FUSED:
        return "the normalizer is no softmax"
    learned = facts.grad and parts.bias is not None and (parts.normalizer.wants_grad or parts.bias.wants_grad)
    if learned and needs_dense_bias(parts, facts.keys):
        return "a fused kernel gives no gradient to a dense bias"
    refusal = explain_unsupported_local_p(facts) if parts.normalizer.form == "local-p" else None
    return refusal or explain_unsupported_without_weights(parts, facts)


def explain_unsupported_few_queries(parts: Parts, facts: CallFacts) -> UnsupportedReason:
    """The kernel for a few queries: a plain softmax on the CPU, for who wants no gradient."""
    refusal = explain_unsupported_sdpa(parts, facts)
    if refusal is not None or parts.normalizer.form != "softmax" or parts.bias is not None:
        return refusal or "it takes a plain softmax without a bias: one of −inf would look like a broken key"
    if parts.score.centers_keys:
        return "the score centers the keys, the hidden ones too"
    if facts.grad or facts.traced or facts.mapped:
        return "it has no backward" if facts.grad else "a compiler cannot see into it"
    there = few_queries.supports(facts.dtype, facts.device) and facts.native == "loaded"
    return None if there else "no compiled library is there for it"


def explain_unsupported_local_p(facts: CallFacts) -> UnsupportedReason:
    """Its two totals need a gradient, and its Gaussian more digits than half precision has."""
    if facts.device != "cpu" or facts.traced:
        return "the row totals of this device's kernel have no gradient"
    if facts.dtype in (torch.float16, torch.bfloat16):
        return "half precision would lose the digits of the Gaussian"
    return None


def needs_dense_bias(parts: Parts, keys: int) -> bool:
    """Whether the bias must be written out for each pair."""
    if parts.bias is None:
        return False
    shift = parts.normalizer.shift_invariant
    return parts.bias.form(causal=parts.mask.causal, shift_invariant=shift, keys=keys) == "dense"


def explain_unsupported_blocks(parts: Parts, facts: CallFacts) -> UnsupportedReason:
    """Blocks of queries need rows that do not depend on one another."""
    if facts.mapped:
        return MAPPED
    return "each row of the weights depends on the row before" if parts.normalizer.form == "sequential" else None


def explain_unsupported_flex(parts: Parts, facts: CallFacts) -> UnsupportedReason:
    """FlexAttention: a thin path for CUDA; no backward on the CPU in torch 2.13."""
    refusal = explain_unsupported_sdpa(parts, facts)
    if refusal is not None or parts.normalizer.form != "softmax" or parts.bias is not None:
        return refusal or "flex is used for plain softmax without a bias"
    if facts.device == "cpu" and facts.grad:
        return "FlexAttention has no backward on the CPU"
    if type(parts.mask) not in (Full, Causal, Window):
        return "flex is used for full, causal and window masks"
    return None if len(facts.lead) == 2 else "flex wants (batch, heads) in front"


UNSUPPORTED_REASONS: dict[Backend, Callable[[Parts, CallFacts], UnsupportedReason]] = {
    "eager": explain_unsupported_eager,
    "sdpa": explain_unsupported_sdpa,
    "few_queries": explain_unsupported_few_queries,
    "local": explain_unsupported_sdpa,
    "linear": explain_unsupported_linear,
    "stream": explain_unsupported_blocks,
    "rows": explain_unsupported_blocks,
    "flex": explain_unsupported_flex,
}
