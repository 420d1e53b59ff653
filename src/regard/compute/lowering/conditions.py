"""Conditions that several backends share: functions of parts and facts, which never read a tensor."""

import torch

from regard.algebra.masks import Causal
from regard.algebra.parts import CallFacts, Parts

UnsupportedReason = str | None

FUSED = ("softmax", "softmax-plus-one", "local-p")
RANGE = "the numbers differ so much in size that only pairs taken one by one keep their digits"
MAPPED = "torch.func maps or differentiates the call, and cannot look into kernels and blocks"
SEQUENTIAL = "each row of the weights depends on the row before"


def explain_unsupported_fused(parts: Parts, facts: CallFacts) -> UnsupportedReason:
    """Return why fused kernels do not support it: they need a softmax of a dot form, and give a mask no gradient."""
    if facts.hazard == "range":
        return RANGE
    if facts.mapped:
        return MAPPED
    if parts.score.form != "dot":
        return "the score has no dot form"
    if parts.normalizer.form not in FUSED:
        return "the normalizer is not a softmax"
    learned = facts.grad and parts.bias is not None and (parts.normalizer.wants_grad or parts.bias.wants_grad)
    if learned and needs_dense_bias(parts, facts.keys):
        return "a fused kernel gives no gradient to a dense bias"
    reason = _explain_unsupported_local_p(facts) if parts.normalizer.form == "local-p" else None
    return reason or explain_weights_needed(parts, facts)


def explain_weights_needed(parts: Parts, facts: CallFacts) -> UnsupportedReason:
    """Return what a kernel that does not write out the weights cannot do."""
    if parts.aggregate.form == "choice":
        return "a hard aggregate needs the weights themselves"
    return "dropout on weights needs the weights themselves" if facts.dropout else None


def _explain_unsupported_local_p(facts: CallFacts) -> UnsupportedReason:
    """Return why local-p is unsupported: it needs gradients of two totals, and more digits than half precision has."""
    if facts.device != "cpu" or facts.traced:
        return "the row totals of this device's kernel have no gradient"
    if facts.dtype in (torch.float16, torch.bfloat16):
        return "half precision would lose the digits of the Gaussian"
    if facts.hazard != "none":
        return "the difference of two totals would lose the digits that their terms have"
    return None


def needs_dense_bias(parts: Parts, keys: int) -> bool:
    """Return whether the bias must be written out for each pair."""
    if parts.bias is None:
        return False
    shift = parts.normalizer.shift_invariant
    return parts.bias.form(causal=parts.mask.causal, shift_invariant=shift, keys=keys) == "dense"


def needs_table(parts: Parts, facts: CallFacts) -> bool:
    """Return whether mask, bias or normalizer must be written out for each pair."""
    # A kernel's own causal flag puts the first query on the first key.
    has_flag = type(parts.mask) is Causal and facts.queries in (1, facts.keys)
    in_kernel = parts.mask.columnwise or has_flag
    return not in_kernel or needs_dense_bias(parts, facts.keys) or parts.normalizer.form == "local-p"
