"""The rules: pure functions of parts and facts. They look at no number in any tensor."""

from collections.abc import Callable
from typing import Literal

import torch

from regard.errors import PlanError, sentence, wrong
from regard.lowering.plan import BACKENDS, Backend, Plan
from regard.lowering.precision import compute_dtype
from regard.lowering.reasons import describe
from regard.masks import Causal, Full, Window
from regard.masks.base import Both, Mask
from regard.numerics import few
from regard.parts import Facts, Parts

LARGE_TABLE = 2**24  # pairs; a float mask of them takes 64 MB, and blocks of queries need none of it
SMALL_TABLE = 2**14  # pairs of a bias that was one number for each key as long as there were few
FUSED = ("softmax", "softmax-plus-one", "local-p")
RANGE = "the numbers differ so much in size that only pairs taken one by one keep their digits"
MAPPED = "torch.func maps or differentiates the call, and cannot look into kernels and blocks"
Refusal = str | None


def lower(parts: Parts, facts: Facts, *, backend: Backend | Literal["auto"] = "auto") -> Plan:
    """The plan for these parts. A backend that is asked for by name and cannot compute them raises."""
    unseen = (facts.traced and parts.score.centers_keys) or (facts.mapped and facts.dtype == torch.float16)
    if unseen and facts.care == "none":  # the content cannot be looked at, so the worst is to be expected
        facts = facts._replace(care="range")
    if backend == "auto":
        chosen, because = choose(parts, facts)
    elif backend in BACKENDS:
        chosen, because = backend, "it was asked for"
        refusal = REFUSALS[backend](parts, facts)
        if refusal is not None:
            fix = 'use backend="auto", which finds one that can'
            raise PlanError(sentence("backend", repr(backend), f"one that can compute this: {refusal}", fix))
    else:
        names = ", ".join(("auto", *BACKENDS))
        raise wrong("backend", repr(backend), f"one of {names}", 'use "auto"')
    precision = None if facts.traced else compute_dtype(facts.dtype, facts.care, cancels=parts.score.centers_keys)
    return Plan(chosen, because, describe(parts, facts, chosen, precision), precision)


def choose(parts: Parts, facts: Facts) -> tuple[Backend, str]:
    """The fastest backend that can, and what decided."""
    if refuse_linear(parts, facts) is None:
        return "linear", "the products can be reassociated, so that the cost is linear in the length"
    if facts.mapped:
        return "eager", MAPPED
    refusal = refuse_sdpa(parts, facts)
    if refusal is None:
        return choose_fused(parts, facts)
    if parts.normalizer.form == "sequential":
        return "eager", "each row of the weights depends on the row before"
    if parts.normalizer.form == "rows" or parts.aggregate.form == "choice":
        return "rows", f"{refusal}; blocks of whole rows bound the memory"
    return "stream", f"{refusal}; blocks of queries bound the memory"


def choose_fused(parts: Parts, facts: Facts) -> tuple[Backend, str]:
    """Among those that end in a fused kernel."""
    width = parts.mask.width
    if width is not None and facts.keys >= 512 and 4 * width <= facts.keys:
        keys = "the" if facts.traced else facts.keys
        return "local", f"a query sees at most {width} of {keys} keys, so only those are read"
    large = SMALL_TABLE if would_be_column(parts, facts) else LARGE_TABLE
    if needs_table(parts, facts) and facts.queries * facts.keys > large:
        return "local", "a mask of this size would not be linear in the length, blocks of it are"
    if refuse_few(parts, facts) is None and facts.queries <= few.MOST and not parts.mask.free(facts.queries):
        return "few", "a handful of queries wants no gradient, so that only the pairs that are allowed are read"
    if parts.normalizer.form == "local-p":
        return "sdpa", "it is two softmaxes of a dot product, with and without the Gaussian"
    return "sdpa", "it is a softmax of a dot product"


def would_be_column(parts: Parts, facts: Facts) -> bool:
    """Whether the bias is written out only because there are so many keys: memory then stays linear, by blocks."""
    return dense_bias(parts, facts.keys) and not dense_bias(parts, 1)


def needs_table(parts: Parts, facts: Facts) -> bool:
    """Whether something must be written out for each pair."""
    free = parts.mask.columnwise or is_causal(parts.mask, facts)
    return not free or dense_bias(parts, facts.keys) or parts.normalizer.form == "local-p"


def is_causal(mask: Mask, facts: Facts) -> bool:
    """Whether a kernel's own causal flag says the same (its first query sits on the first key)."""
    return type(mask) is Causal and facts.queries in (1, facts.keys)


def refuse_eager(parts: Parts, facts: Facts) -> Refusal:
    """The definition computes everything."""
    return None


def refuse_linear(parts: Parts, facts: Facts) -> Refusal:
    """Linear attention needs a row total of a dot form, and a mask that is a cut or a triangle."""
    if parts.normalizer.form != "row-total":
        return "only the row total can be reassociated"
    if facts.care == "range" or parts.score.centers_keys:
        return RANGE if facts.care == "range" else "a sum over keys would lose the digits of the score"
    if parts.score.form != "dot" or parts.bias is not None:
        return "the score has no dot form" if parts.score.form != "dot" else "a bias would have to be a feature"
    if not linear_mask(parts.mask):
        return "the mask is neither causal nor the same for all queries"
    return refuse_blocks_of_choice(parts, facts)


def linear_mask(mask: Mask) -> bool:
    """Whether running sums can follow it: some keys for all queries, or those up to the query, or both."""
    if type(mask) is Both:
        return all(linear_mask(part) for part in mask.parts)
    return mask.columnwise or type(mask) is Causal


def refuse_blocks_of_choice(parts: Parts, facts: Facts) -> Refusal:
    """What no kernel that hides the weights can do."""
    if parts.aggregate.form == "choice":
        return "a hard reading needs the weights themselves"
    return "dropout on weights needs the weights themselves" if facts.dropout else None


def refuse_sdpa(parts: Parts, facts: Facts) -> Refusal:
    """A fused kernel needs a softmax of a dot form, and gives no gradient to a mask."""
    if facts.care == "range":
        return RANGE
    if facts.mapped:
        return MAPPED
    if parts.score.form != "dot":
        return "the score has no dot form"
    if parts.normalizer.form not in FUSED:
        return "the normalizer is no softmax"
    learned = facts.grad and parts.bias is not None and (parts.normalizer.wants_grad or parts.bias.wants_grad)
    if learned and dense_bias(parts, facts.keys):
        return "a fused kernel gives no gradient to a dense bias"
    refusal = refuse_local_p(facts) if parts.normalizer.form == "local-p" else None
    return refusal or refuse_blocks_of_choice(parts, facts)


def refuse_few(parts: Parts, facts: Facts) -> Refusal:
    """The kernel for a few queries: a plain softmax on the CPU, for who wants no gradient."""
    refusal = refuse_sdpa(parts, facts)
    if refusal is not None or parts.normalizer.form != "softmax" or parts.bias is not None:
        return refusal or "it takes a plain softmax without a bias: one of −inf would look like a broken key"
    if parts.score.centers_keys:
        return "the score centers the keys, the hidden ones too"
    if facts.grad or facts.traced or facts.mapped:
        return "it has no backward" if facts.grad else "a compiler cannot see into it"
    there = few.supports(facts.dtype, facts.device) and facts.native == "loaded"
    return None if there else "no compiled library is there for it"


def refuse_local_p(facts: Facts) -> Refusal:
    """Its two totals need a gradient, and its Gaussian more digits than half precision has."""
    if facts.device != "cpu" or facts.traced:
        return "the row totals of this device's kernel have no gradient"
    if facts.dtype in (torch.float16, torch.bfloat16):
        return "half precision would lose the digits of the Gaussian"
    return None


def dense_bias(parts: Parts, keys: int) -> bool:
    """Whether the bias must be written out for each pair."""
    if parts.bias is None:
        return False
    shift = parts.normalizer.shift_invariant
    return parts.bias.form(causal=parts.mask.causal, shift_invariant=shift, keys=keys) == "dense"


def refuse_blocks(parts: Parts, facts: Facts) -> Refusal:
    """Blocks of queries need rows that do not depend on one another."""
    if facts.mapped:
        return MAPPED
    return "each row of the weights depends on the row before" if parts.normalizer.form == "sequential" else None


def refuse_flex(parts: Parts, facts: Facts) -> Refusal:
    """FlexAttention: a thin path for CUDA; no backward on the CPU in torch 2.13."""
    refusal = refuse_sdpa(parts, facts)
    if refusal is not None or parts.normalizer.form != "softmax" or parts.bias is not None:
        return refusal or "flex is used for plain softmax without a bias"
    if facts.device == "cpu" and facts.grad:
        return "FlexAttention has no backward on the CPU"
    if type(parts.mask) not in (Full, Causal, Window):
        return "flex is used for full, causal and window masks"
    return None if len(facts.lead) == 2 else "flex wants (batch, heads) in front"


REFUSALS: dict[Backend, Callable[[Parts, Facts], Refusal]] = {
    "eager": refuse_eager,
    "sdpa": refuse_sdpa,
    "few": refuse_few,
    "local": refuse_sdpa,
    "linear": refuse_linear,
    "stream": refuse_blocks,
    "rows": refuse_blocks,
    "flex": refuse_flex,
}
