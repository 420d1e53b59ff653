"""What becomes of each piece, in words."""

import torch

from regard.algebra.masks import Causal
from regard.algebra.parts import Facts, Parts
from regard.compute.kernels import additive
from regard.compute.planning.plan import Backend, Step

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
    "Features": ("a dot product of features", "the map acts on query and key alone"),
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


def describe(parts: Parts, facts: Facts, backend: Backend, precision: torch.dtype | None = None) -> tuple[Step, ...]:
    """A step for each piece."""
    steps = [
        score_step(parts, facts, backend),
        mask_step(parts, facts, backend),
        normalizer_step(parts, backend),
    ]
    if parts.bias is not None:
        steps.insert(1, bias_step(parts, facts, backend))
    if parts.aggregate.form == "choice":
        steps.append(Step("reading", "a pick from the weights of each row", "a hard reading needs them"))
    if facts.dropout:
        steps.append(Step("dropout", "noise addressed by pair", "a block recomputes what it drew and stores nothing"))
    if precision is not None:
        name, own = (str(dtype).removeprefix("torch.") for dtype in (precision, facts.dtype))
        steps.append(Step("precision", name, PRECISION[facts.care].format(own=own)))
    if facts.traced and backend in ("local", "stream", "rows"):
        steps.append(Step("backward", "stored, not recomputed", "the call is being traced by a compiler"))
    return tuple(steps)


def score_step(parts: Parts, facts: Facts, backend: Backend) -> Step:
    """What becomes of the score."""
    name = type(parts.score).__name__
    if backend == "eager":
        return Step("score", f"{name} as it is defined", "eager is the definition")
    if parts.score.form == "additive" and facts.traced:  # a length that is traced is no number to say
        return Step("score", "the factored kernel without tanh", "a compiler sees it as one operator")
    if parts.score.form == "additive":
        work = facts.queries * facts.keys * facts.dim * max(1, _product(facts.lead))
        kernel, because = additive.choice(work, facts.device, facts.dtype, facts.native)
        return Step("score", f"the factored kernel without tanh ({kernel})", because)
    if parts.score.form == "dot":
        becomes, because = SCORES.get(name, ("its dot form", "it has one"))
        return Step("score", becomes, because)
    return Step("score", f"{name} block by block", "it has no dot form")


def _product(sizes: tuple[int, ...]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def bias_step(parts: Parts, facts: Facts, backend: Backend) -> Step:
    """What becomes of the bias."""
    if parts.bias is None or backend == "eager":
        return Step("bias", "added to the scores", "eager is the definition")
    shift = parts.normalizer.shift_invariant
    form = parts.bias.form(causal=parts.mask.causal, shift_invariant=shift, keys=facts.keys)
    if backend in ("stream", "rows"):
        return Step("bias", "added block by block", "the scores of a block are at hand")
    if form == "column":
        return Step("bias", "one more coordinate of the keys", "under this mask a number for each key says the same")
    return Step("bias", "a dense float mask", "it differs from pair to pair")


def mask_step(parts: Parts, facts: Facts, backend: Backend) -> Step:
    """What becomes of the mask."""
    mask = parts.mask
    if mask.free(facts.queries):
        return Step("mask", "none", "every pair is allowed")
    if backend in ("local", "stream", "rows"):
        return Step("mask", "a range of keys for each block of queries", "keys outside it are never read")
    if backend == "few":
        return Step("mask", "a list of keys for each query", "keys that are not in it are never read")
    if backend == "linear":
        return Step("mask", "running sums over chunks" if mask.causal else "zeroed keys", "totals follow it")
    if backend == "sdpa" and type(mask) is Causal and facts.queries == facts.keys:
        return Step("mask", "the kernel's causal flag", "there are as many queries as keys")
    if mask.columnwise:
        return Step("mask", "one row of the mask, shared by all queries", "it is the same for every query")
    return Step("mask", "a table of pairs", "it differs from pair to pair")


def normalizer_step(parts: Parts, backend: Backend) -> Step:
    """What becomes of the normalizer."""
    if backend == "eager":
        return Step("normalizer", "as it is defined", "eager is the definition")
    becomes, because = NORMALIZERS[parts.normalizer.form]
    if backend in ("stream", "rows") and parts.normalizer.form in ("softmax", "softmax-plus-one", "local-p"):
        becomes, because = "itself, on whole rows of a block", "a block holds all keys of its queries"
    return Step("normalizer", becomes, because)
