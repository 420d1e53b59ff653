"""Whether a dot form keeps the digits that the definition keeps, and what is computed more precisely if not.

A score with a `row`, such as the Gaussian, is a small difference of large terms: −‖q−k‖²/2 = q·k − ‖q‖²/2 − ‖k‖²/2.
Rounding makes an error of about eps times the size of the terms, the definition one of eps times the score itself. So
the terms must not be much larger than the scores that count, which are about as large as the log of the row total.
"""

import torch

from regard.algebra.parts import AttentionCall, NumericalHazard
from regard.algebra.scores.base import DotForm
from regard.algebra.shapes import Tensor
from regard.compute.kernels.native import tensor_memory

HALVES = (torch.float16, torch.bfloat16)
# Measured on mixtures of offsets, widths and dimensions: below these, errors stay within the contract of DESIGN.md.
RATIO = 4.0  # of the terms to the scores that count
FLOOR = 11.0  # what the contract grants to a score of 0, in units of eps / RATIO
LARGEST = 512.0  # above, the definition itself is so rough that chance decides which of the two is better
HALF = 2.0  # the most of half precision: the definition is computed in float32 there and loses nothing
LEARNED = 0.02  # the most if a setting of the score is learned: its gradient adds up the terms themselves
LARGEST_TOTAL = 32.0  # of row totals that others are taken from: the difference errs by half as many roundings


class LostDigitsError(ArithmeticError):
    """A fused call is not exact enough, which is found out half way."""


def loses_difference(*totals: Tensor) -> bool:
    """Return whether the logs of these row totals are so large that differences with them lose digits."""
    some = [total.detach() for total in totals if total.numel() and tensor_memory.is_readable(total)]
    return any(float(total.abs().masked_fill(~total.isfinite(), 0.0).max()) > LARGEST_TOTAL for total in some)


def loses_digits(call: AttentionCall, form: DotForm, total: Tensor | None) -> bool:
    """Return whether the terms of this form are too large for the dtype that the call is computed in.

    `total` is the log of the row totals, without the row, that a kernel left behind; if there is none, the scores that
    count are taken as 0. If the call is computed in a wider dtype than that of its result, terms may be larger.
    """
    if form.row is None or form.column is None or not form.row.numel() or not form.column.numel():
        return False
    if not tensor_memory.is_readable(form.query, form.key) or (total is not None and not total.numel()):
        return False  # traced, so that the plan was careful from the start, or empty
    share = torch.finfo(form.query.dtype).eps / torch.finfo(call.dtype).eps
    with torch.no_grad():
        terms = (form.row.double().abs() + form.column.double().abs().amax()) * share
        scores = torch.zeros_like(terms)
        if total is not None:
            known = total.double() + form.row.double()
            scores = known.abs().masked_fill(~known.isfinite(), 0.0)  # an empty row has no scores that count
        worst, most = (terms / (FLOOR + scores)).amax(), terms.amax()
    return not bool((worst <= RATIO) & (most <= _choose_limit(call, share)))


def _choose_limit(call: AttentionCall, share: float) -> float:
    """Return how large terms may be, in units of what a rounding of the result is to one of the computation."""
    if share < 1 and torch.is_grad_enabled() and call.parts.score.wants_grad:
        return LEARNED
    return HALF if call.dtype in HALVES else LARGEST


def choose_compute_dtype(
    own: torch.dtype, hazard: NumericalHazard, *, cancels: bool, steep: bool
) -> torch.dtype | None:
    """Return the dtype to compute in; None for the dtype of the tensors themselves.

    `steep`: gradients are wanted, and each step of the backward pass would be rounded to the dtype of the tensors.
    """
    half = own in HALVES
    if hazard == "none":
        return torch.float32 if half and (cancels or steep) else None
    if own == torch.float16 and not cancels:  # its largest squares are far from the largest float32
        return torch.float32
    return None if own == torch.float64 else torch.float64
