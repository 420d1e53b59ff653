"""What becomes of each piece, in words."""

import torch

from regard.algebra.masks import Causal
from regard.algebra.parts import CallFacts, Parts
from regard.compute.kernels import additive
from regard.compute.planning.plan import Backend, PlanStep

SCORES = {
    "Dot": ("itself", "it is a dot product"),
    "ScaledDot": ("itself", "the factor is the kernel's own scale"),
    "Bilinear": ("a dot product with q' = Wᵀq", "the matrix can be multiplied into the queries"),
    "Cosine": ("a dot product of unit vectors", "the lengths can be divided out first"),
    "Gaussian": (
        "a dot product with one more coordinate",
        "−‖q−k‖²/2 = q·k − ‖k‖²/2 − ‖q‖²/2, and keys are centered",
    ),
    "Location": ("a dot product with the rows of W as keys", "no key is read"),
    "FeatureDot": ("a dot product of features", "the map acts on query and key alone"),
    "Sum": ("coordinates side by side", "dot forms add"),
    "Multiple": ("a scale", "dot forms have multiples"),
}
NORMALIZERS = {
    "softmax": ("the kernel's softmax", "temperature is a scale"),
    "softmax-plus-one": ("one zero key and value appended", "that key has score 0 and adds nothing"),
    "local-p": ("two fused calls and the ratio of their totals", "the Gaussian multiplies after the softmax"),
    "row-total": ("a division by the row's sum", "it commutes with the average"),
    "elementwise": ("itself, elementwise", "no row total is needed"),
    "rows": ("itself, on whole rows", "its threshold depends on the whole row"),
    "sequential": ("itself, row after row", "a row depends on the row before"),
}


PRECISION = {
    "none": "{own} has too few digits for the squares of this score",
    "digits": "{own} would lose digits: the terms of the score are much larger than the score",
    "range": "{own} would overflow or lose digits: the numbers differ too much in size",
}


def build_steps(
    parts: Parts, facts: CallFacts, backend: Backend, precision: torch.dtype | None = None
) -> tuple[PlanStep, ...]:
    """A step for each piece."""
    steps = [
        describe_score(parts, facts, backend),
        describe_mask(parts, facts, backend),
        describe_normalizer(parts, backend),
    ]
    if parts.bias is not None:
        steps.insert(1, describe_bias(parts, facts, backend))
    if parts.aggregate.form == "choice":
        steps.append(PlanStep("aggregate", "a pick from the weights of each row", "a hard aggregate needs them"))
    if facts.dropout:
        steps.append(
            PlanStep("dropout", "noise addressed by pair", "a block recomputes what it drew and stores nothing")
        )
    if precision is not None:
        name, own = (str(dtype).removeprefix("torch.") for dtype in (precision, facts.dtype))
        steps.append(PlanStep("precision", name, PRECISION[facts.hazard].format(own=own)))
    if facts.traced and backend in ("local", "stream", "rows"):
        steps.append(PlanStep("backward", "stored, not recomputed", "the call is being traced by a compiler"))
    return tuple(steps)


def describe_score(parts: Parts, facts: CallFacts, backend: Backend) -> PlanStep:
    """What becomes of the score."""
    name = type(parts.score).__name__
    if backend == "eager":
        return PlanStep("score", f"{name} as it is defined", "eager is the definition")
    if parts.score.form == "additive" and facts.traced:  # a length that is traced is no number to say
        return PlanStep("score", "the factored kernel without tanh", "a compiler sees it as one operator")
    if parts.score.form == "additive":
        work = facts.queries * facts.keys * facts.dim * max(1, _multiply_sizes(facts.lead))
        kernel, because = additive.choose_kernel(work, facts.device, facts.dtype, facts.native)
        return PlanStep("score", f"the factored kernel without tanh ({kernel})", because)
    if parts.score.form == "dot":
        becomes, because = SCORES.get(name, ("its dot form", "it has one"))
        return PlanStep("score", becomes, because)
    return PlanStep("score", f"{name} block by block", "it has no dot form")


def _multiply_sizes(sizes: tuple[int, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def describe_bias(parts: Parts, facts: CallFacts, backend: Backend) -> PlanStep:
    """What becomes of the bias."""
    if parts.bias is None or backend == "eager":
        return PlanStep("bias", "added to the scores", "eager is the definition")
    shift = parts.normalizer.shift_invariant
    form = parts.bias.form(causal=parts.mask.causal, shift_invariant=shift, keys=facts.keys)
    if backend in ("stream", "rows"):
        return PlanStep("bias", "added block by block", "the scores of a block are at hand")
    if form == "column":
        return PlanStep(
            "bias", "one more coordinate of the keys", "under this mask a number for each key says the same"
        )
    return PlanStep("bias", "a dense float mask", "it differs from pair to pair")


def describe_mask(parts: Parts, facts: CallFacts, backend: Backend) -> PlanStep:
    """What becomes of the mask."""
    mask = parts.mask
    if mask.allows_all(facts.queries):
        return PlanStep("mask", "none", "every pair is allowed")
    if backend in ("local", "stream", "rows"):
        return PlanStep("mask", "a range of keys for each block of queries", "keys outside it are never read")
    if backend == "few_queries":
        return PlanStep("mask", "a list of keys for each query", "keys that are not in it are never read")
    if backend == "linear":
        return PlanStep("mask", "running sums over chunks" if mask.causal else "zeroed keys", "totals follow it")
    if backend == "sdpa" and type(mask) is Causal and facts.queries == facts.keys:
        return PlanStep("mask", "the kernel's causal flag", "there are as many queries as keys")
    if mask.columnwise:
        return PlanStep("mask", "one row of the mask, shared by all queries", "it is the same for every query")
    return PlanStep("mask", "a table of pairs", "it differs from pair to pair")


def describe_normalizer(parts: Parts, backend: Backend) -> PlanStep:
    """What becomes of the normalizer."""
    if backend == "eager":
        return PlanStep("normalizer", "as it is defined", "eager is the definition")
    becomes, because = NORMALIZERS[parts.normalizer.form]
    if backend in ("stream", "rows") and parts.normalizer.form in ("softmax", "softmax-plus-one", "local-p"):
        becomes, because = "itself, on whole rows of a block", "a block holds all keys of its queries"
    return PlanStep("normalizer", becomes, because)
