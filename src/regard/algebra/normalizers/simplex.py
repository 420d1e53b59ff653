"""Normalizers whose rows do not depend on each other."""

import torch
from torch import nn

from regard.algebra.entries import list_as, list_learned
from regard.algebra.normalizers.base import ANY_PAIRS, RowNormalizer
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Allowed, Distribution, Scores, Tensor, widen
from regard.algebra.terms import broadcast_per_head, learn_setting
from regard.compute.kernels import simplex
from regard.compute.kernels.flat_entmax import flat_entmax
from regard.errors import wrong

LARGEST_ALPHA = 100.0
RANGE = "a number above 0 and at most 100"


@list_as("softmax", aliases="masked-softmax 掩蔽-softmax 掩蔽softmax 归一化指数")
@list_learned("tempered", 0.7, aliases="temperature 温度")
class Softmax(RowNormalizer):
    r"""Shares in proportion to the exponential of the score.

    $$ w_{ij} = \frac{e^{s_{ij} / \tau}}{\sum_{j' \text{ allowed}} e^{s_{ij'} / \tau}} $$

    with $\tau$ = `temperature`, fixed or learned, one or one for each head.

    Lowers to: itself; the temperature is the kernel's own scale.
    """

    form = "softmax"
    shift_invariant = True
    temperature: float | Tensor

    def __init__(self, temperature: float | Tensor = 1.0) -> None:
        super().__init__()
        self.hold_setting("temperature", temperature, fix_if_not_positive="use 1.0 for plain softmax, Argmax() for 0")

    @classmethod
    def learned(cls, temperature: float = 1.0, *, heads: int | None = None) -> "Softmax":
        """Return one whose temperature is trained, for each head if heads are given."""
        return cls(learn_setting(temperature, heads))

    def forward(self, scores: Scores, allowed: Allowed | None = None, pairs: Pairs = ANY_PAIRS) -> Distribution:
        if not isinstance(self.temperature, Tensor) and self.temperature == 1.0:
            return simplex.softmax(scores, allowed)
        return simplex.softmax(widen(scores) / broadcast_per_head(self.temperature), allowed).to(scores.dtype)


@list_as("softmax-plus-one", aliases="softmax1 off-by-one quiet")
class SoftmaxPlusOne(RowNormalizer):
    r"""Softmax that may attend to nothing.

    $$ w_{ij} = \frac{e^{s_{ij}}}{1 + \sum_{j'} e^{s_{ij'}}} $$

    Miller 2023 (*Attention is off by one*); the same as one more key of score 0 whose value is 0.

    Lowers to: one zero key and value appended.
    """

    form = "softmax-plus-one"

    def forward(self, scores: Scores, allowed: Allowed | None = None, pairs: Pairs = ANY_PAIRS) -> Distribution:
        return simplex.softmax_plus_one(scores, allowed)


@list_as("sparsemax", aliases="martins 稀疏")
class Sparsemax(RowNormalizer):
    r"""The nearest point of the simplex, most of whose coordinates are 0.

    $$ w_i = \operatorname{argmin}_{p \in \Delta} \lVert p - s_i \rVert^2 $$

    Martins & Astudillo 2016, eq. 2.

    Lowers to: query blocks of whole rows.
    """

    shift_invariant = True

    def forward(self, scores: Scores, allowed: Allowed | None = None, pairs: Pairs = ANY_PAIRS) -> Distribution:
        return simplex.sparsemax(scores, allowed)


@list_as("entmax-1.5", aliases="entmax15")
class Entmax15(RowNormalizer):
    r"""Half way between softmax and sparsemax.

    $$ w_{ij} = [s_{ij} / 2 - \tau_i]_+^2 $$

    with $\tau_i$ such that the row sums to one. Peters et al. 2019, eq. 10 with α = 1.5.

    Lowers to: query blocks of whole rows.
    """

    shift_invariant = True

    def forward(self, scores: Scores, allowed: Allowed | None = None, pairs: Pairs = ANY_PAIRS) -> Distribution:
        return simplex.entmax15(scores, allowed)


@list_learned("entmax", 1.3, aliases="alpha-entmax α-entmax")
class Entmax(RowNormalizer):
    r"""From flatter than softmax (α < 1) over softmax (1) and sparsemax (2) to sparser still, with α fixed or learned.

    $$ w_{ij} = [(\alpha - 1) s_{ij} - \tau_i]_+^{1 / (\alpha - 1)} $$

    with α = `alpha`, above 0 and at most 100, one or one for each head. Peters et al. 2019, eq. 10; learned: Correia et
    al. 2019.

    Lowers to: query blocks of whole rows.
    """

    shift_invariant = True
    alpha: float | Tensor

    def __init__(self, alpha: float | Tensor = 1.5) -> None:
        super().__init__()
        self.hold_setting("alpha", alpha)
        _check_alpha(alpha)

    @classmethod
    def learned(cls, alpha: float = 1.5, *, heads: int | None = None) -> "Entmax":
        """Return one whose α is trained, for each head if heads are given."""
        return cls(learn_setting(alpha, heads))

    def forward(self, scores: Scores, allowed: Allowed | None = None, pairs: Pairs = ANY_PAIRS) -> Distribution:
        _check_alpha(self.alpha)  # again, because training may have moved it out of the range
        alpha = broadcast_per_head(self.alpha)
        if _is_flat(alpha):
            return _mix_flat(scores, allowed, torch.as_tensor(alpha, dtype=torch.float64, device=scores.device))
        return simplex.entmax(scores, allowed, alpha)


def _check_alpha(alpha: float | Tensor) -> None:
    """Raise if α is out of range, if Python can read it cheaply."""
    if not isinstance(alpha, Tensor):
        if not 0 < alpha <= LARGEST_ALPHA:
            raise wrong("alpha", alpha, RANGE, "use 1 for softmax, 1.5, or 2 for sparsemax")
    elif alpha.numel() and _is_readable(alpha):
        least, most = (end.item() for end in alpha.detach().aminmax())
        if not (least > 0 and most <= LARGEST_ALPHA):
            fix = "clamp it after each step, or learn the argument of 1 + softplus"
            raise wrong("alpha", most if least > 0 else least, RANGE, fix)


def _is_flat(alpha: float | Tensor) -> bool:
    """Return whether some α is below 1, or may be: a traced α is not read."""
    if not isinstance(alpha, Tensor):
        return alpha < 1
    return not _is_readable(alpha) or (bool(alpha.numel()) and bool((alpha < 1).any()))


def _mix_flat(scores: Scores, allowed: Allowed | None, alpha: Tensor) -> Distribution:
    """Return the weights of heads some of which have an α below 1."""
    flat = flat_entmax(scores, allowed, torch.where(alpha < 1, alpha, 0.5))
    if _is_readable(alpha) and bool((alpha < 1).all()):
        return flat.to(scores.dtype)
    sharp = simplex.entmax(scores, allowed, torch.where(alpha < 1, 1.0, alpha))
    return torch.where(alpha < 1, flat, sharp.double()).to(scores.dtype)


def _is_readable(tensor: Tensor) -> bool:
    """Return whether reading its numbers is cheap and does not break a trace of torch."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    real = type(tensor) in (Tensor, nn.Parameter) and torch._C._len_torch_dispatch_stack() == 0
    return real and tensor.device.type == "cpu"


@list_as("sigmoid", aliases="logistic")
class Sigmoid(RowNormalizer):
    r"""A weight for each pair by itself: rows do not sum to one.

    $$ w_{ij} = \sigma(s_{ij} + b) $$

    with $b$ = `shift`, one or one for each head; Ramapuram et al. 2024 use $b = -\log n$, which makes a fresh row sum
    to about one.

    Lowers to: query blocks, elementwise.
    """

    form = "elementwise"
    shift: float | Tensor

    def __init__(self, shift: float | Tensor = 0.0) -> None:
        super().__init__()
        self.hold_setting("shift", shift)

    def forward(self, scores: Scores, allowed: Allowed | None = None, pairs: Pairs = ANY_PAIRS) -> Distribution:
        return simplex.sigmoid(widen(scores) + broadcast_per_head(self.shift), allowed).to(scores.dtype)


@list_as("row-total", aliases="linear sum-normalization 行和")
class RowTotal(RowNormalizer):
    r"""Scores over their sum: for scores that are never negative, such as products of positive features.

    $$ w_{ij} = s_{ij} / \sum_{j'} s_{ij'} $$

    and 0 if the sum is 0. Katharopoulos et al. 2020, eq. 3.

    Lowers to: two matrix products reassociated, linear in the length, if the score has a dot form.
    """

    form = "row-total"

    def forward(self, scores: Scores, allowed: Allowed | None = None, pairs: Pairs = ANY_PAIRS) -> Distribution:
        return simplex.row_total(scores, allowed)
