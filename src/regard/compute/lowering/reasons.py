"""What becomes of each part if a backend says nothing else, in words: (what, why)."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from regard.algebra.masks import Causal
from regard.algebra.parts import CallFacts, Parts
from regard.algebra.scores import Bilinear, Cosine, Dot, FeatureDot, Gaussian, Location, ScaledDot, Score
from regard.algebra.scores.base import Multiple, Sum
from regard.compute.kernels import additive

Step = tuple[str, str]

SCORES: Mapping[type[Score], Step] = {
    Dot: ("itself", "it is a dot product"),
    ScaledDot: ("itself", "the factor is the kernel's own scale"),
    Bilinear: ("a dot product with q' = Wᵀq", "the matrix can be multiplied into the queries"),
    Cosine: ("a dot product of unit vectors", "the lengths can be divided out first"),
    Gaussian: ("a dot product with one more coordinate", "−‖q−k‖²/2 = q·k − ‖k‖²/2 − ‖q‖²/2, and keys are centered"),
    Location: ("a dot product with the rows of W as keys", "no key is read"),
    FeatureDot: ("a dot product of features", "the map acts on query and key alone"),
    Sum: ("coordinates side by side", "dot forms add"),
    Multiple: ("a scale", "dot forms have multiples"),
}
NORMALIZERS: Mapping[str, Step] = {
    "softmax": ("the kernel's softmax", "temperature is a scale"),
    "softmax-plus-one": ("one zero key and value appended", "that key has score 0 and adds nothing"),
    "local-p": ("two fused calls and the ratio of their totals", "the Gaussian multiplies after the softmax"),
    "row-total": ("a division by the row's sum", "it commutes with the average"),
    "elementwise": ("itself, elementwise", "no row total is needed"),
    "rows": ("itself, on whole rows", "its threshold depends on the whole row"),
    "sequential": ("itself, row after row", "a row depends on the row before"),
}


class PartForms(NamedTuple):
    """What reasons look at. It holds no tensor, so that a plan may be kept and compared."""

    score: type[Score]
    score_form: str
    bias: str | None  # how it enters a fused kernel
    hides: bool  # whether the mask hides any pair
    causal: bool
    columnwise: bool
    has_causal_flag: bool  # whether a kernel's own causal flag is this mask
    normalizer: str
    aggregate: str
    sparse: bool
    centers_keys: bool  # whether some path subtracts the mean of the keys


def collect_forms(parts: Parts, facts: CallFacts) -> PartForms:
    """Return the forms of these parts in a call."""
    score, bias, mask, normalizer, aggregate = parts
    shift, causal = normalizer.shift_invariant, mask.causal
    return PartForms(
        type(score),
        score.form,
        None if bias is None else bias.form(causal=causal, shift_invariant=shift, keys=facts.keys),
        not mask.allows_all(facts.queries),
        causal,
        mask.columnwise,
        type(mask) is Causal and facts.queries == facts.keys,
        normalizer.form,
        aggregate.form,
        facts.sparse,
        score.centers_keys,
    )


def explain_score(forms: PartForms, facts: CallFacts) -> Step:
    """Return what becomes of the score."""
    if forms.score_form == "dot":
        return SCORES.get(forms.score, ("its dot form", "it has one"))
    if forms.score_form != "additive":
        return f"{forms.score.__name__} block by block", "it has no dot form"
    if facts.traced:  # a traced length is not a number that could be printed
        return "one operator for all pairs", "a compiler cannot look into the kernel"
    work = facts.queries * facts.keys * facts.dim * max(1, math.prod(facts.lead))
    kernel, because = additive.choose_kernel(work, facts.device, facts.dtype, facts.native)
    return ("the factored kernel without tanh" if kernel == "native" else "tanh of each pair in torch blocks"), because


def explain_bias(forms: PartForms) -> Step:
    """Return what becomes of the bias in a fused kernel."""
    if forms.bias == "column":
        return "one more coordinate of the keys", "under this mask a number for each key says the same"
    return "a dense float mask", "it differs from pair to pair"


def explain_mask(forms: PartForms) -> Step:
    """Return what becomes of a mask that hides something."""
    if forms.columnwise:
        return "one row of the mask, shared by all queries", "it is the same for every query"
    return "a table of pairs", "it differs from pair to pair"
