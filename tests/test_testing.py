"""The public checks pass what is right and name what is wrong, on parts broken in one way each."""

from dataclasses import dataclass

import pytest
import torch

from regard import (
    Bilinear,
    Causal,
    Dot,
    DotForm,
    DotScore,
    Full,
    Gaussian,
    Laplacian,
    Lengths,
    Mask,
    Monotonic,
    Normalizer,
    Parts,
    Score,
    Soft,
    Softmax,
    Sparsemax,
    Window,
)
from regard.pairs import Pairs
from regard.shapes import Tensor
from regard.testing import check_lowering, check_mask, check_normalizer, check_score

pytestmark = pytest.mark.usefixtures("as_installed")  # what runs in other people's tests has no shape checks of ours


# ------------------------------------------------------------------------------------------------ scores
class WrongDotForm(DotScore):
    """The formula halves; the dot form does not."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return 0.5 * query @ key.transpose(-1, -2)

    def dot_form(self, query: Tensor, key: Tensor) -> DotForm:
        return DotForm(query, key)


class WrongColumn(DotScore):
    """A number for each key that is off by a shift for each key."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-1, -2) + key.sum(-1)[..., None, :]

    def dot_form(self, query: Tensor, key: Tensor) -> DotForm:
        return DotForm(query, key, column=key.mean(-1))


class WrongRow(DotScore):
    """Softmax cannot see it, but sigmoid and the row total can."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-1, -2)

    def dot_form(self, query: Tensor, key: Tensor) -> DotForm:
        return DotForm(query, key, row=query.sum(-1))


class LostGradient(DotScore):
    """Right in value."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-1, -2)

    def dot_form(self, query: Tensor, key: Tensor) -> DotForm:
        return DotForm(query.detach(), key)


class WrongStream(Laplacian):
    """Euclidean where the formula says absolute differences."""

    def stream(self, query: Tensor, key: Tensor) -> Tensor:
        return -torch.cdist(query, key)


class LostParameter(Score):
    """A learned number that the fast derivation hides from autograd."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return self.factor * (query @ key.transpose(-1, -2))

    def stream(self, query: Tensor, key: Tensor) -> Tensor:
        return self.factor.detach() * (query @ key.transpose(-1, -2))


class Chebyshev(Score):
    """A right score of somebody's own, from its formula alone."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return -(query[..., :, None, :] - key[..., None, :, :]).abs().amax(-1)


@pytest.mark.parametrize("score", [Chebyshev(), Gaussian(0.7), Bilinear(5, 5), Dot() + 0.5 * Laplacian()], ids=repr)
def test_right_scores_pass(score: Score) -> None:
    check_score(score)


@pytest.mark.parametrize(
    "score", [WrongDotForm(), WrongColumn(), WrongRow(), LostGradient(), WrongStream(), LostParameter()]
)
def test_wrong_scores_are_named(score: Score) -> None:
    with pytest.raises(AssertionError, match=f"^{type(score).__name__} × .* differs from the definition: value "):
        check_score(score)


def test_a_score_is_left_as_it_was() -> None:
    score = Bilinear(5, 5)
    check_score(score)
    assert score.weight.dtype == torch.float32


# ------------------------------------------------------------------------------------------------ masks
@dataclass(frozen=True, slots=True)
class Strict(Mask):
    """Before, not at, its own position: a right mask of somebody's own."""

    def allowed(self, pairs: Pairs) -> Tensor:
        return pairs.column < pairs.position


@dataclass(frozen=True, slots=True)
class SmallSpan(Window):
    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        low, high = Window.span(self, start, stop, queries, keys)
        return low, max(low, high - 1)


@dataclass(frozen=True, slots=True)
class SpanOfOneRow(Window):
    """Right for each row alone, too small for two."""

    def span(self, start: int, stop: int, queries: int, keys: int) -> tuple[int, int]:
        return Window.span(self, start, start + 1, queries, keys)


@dataclass(frozen=True, slots=True)
class BlockCounts(Mask):
    """Counts from the first row of the block, not of the table."""

    def allowed(self, pairs: Pairs) -> Tensor:
        return pairs.column <= torch.arange(pairs.rows[1] - pairs.rows[0])[:, None]


@dataclass(frozen=True, slots=True)
class FalselyCausal(Mask):
    def allowed(self, pairs: Pairs) -> Tensor:
        return pairs.column <= pairs.position + 1

    @property
    def causal(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class FalselyColumnwise(Mask):
    def allowed(self, pairs: Pairs) -> Tensor:
        return pairs.column <= pairs.position

    @property
    def columnwise(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class FalselyNarrow(Mask):
    def allowed(self, pairs: Pairs) -> Tensor:
        return (pairs.column - pairs.position).abs() <= 1

    @property
    def width(self) -> int:
        return 2


@pytest.mark.parametrize("mask", [Strict(), Causal(), Full(), Lengths(torch.tensor([[0], [7]])) & Strict()], ids=repr)
def test_right_masks_pass(mask: Mask) -> None:
    check_mask(mask)


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        (SmallSpan(before=1, after=1), "^outside the span of rows 0 … 0: got"),
        (SpanOfOneRow(before=1, after=1), "^outside the span of rows 0 … 1: got"),
        (BlockCounts(), "^rows 1 … 1 of BlockCounts: got"),
        (FalselyCausal(), "^FalselyCausal.causal: got True, but a query sees a key after its own position$"),
        (FalselyColumnwise(), "^FalselyColumnwise.columnwise: got True, but two queries see different keys$"),
        (FalselyNarrow(), "^FalselyNarrow.width: got 2, but a query sees 3 keys$"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_masks_are_named(mask: Mask, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_mask(mask)


# ------------------------------------------------------------------------------------------------ normalizers
class Halved(Normalizer):
    """A right normalizer of somebody's own: half a softmax."""

    form = "rows"
    shift_invariant = True

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        half: Tensor = 0.5 * Softmax()(scores, allowed, pairs)
        return half


class Leaks(Halved):
    """Adds a little everywhere, also where nothing is allowed."""

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        return Halved.forward(self, scores, allowed, pairs) + 1e-3


class ReadsTheHidden(Halved):
    """0 · NaN: multiplies by the mask instead of choosing by it."""

    shift_invariant = False

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        weights = torch.sigmoid(scores)
        return weights if allowed is None else weights * allowed


class Negative(Halved):
    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        return -Halved.forward(self, scores, allowed, pairs)


class FeelsShifts(Halved):
    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        weights = torch.sigmoid(scores)
        return weights if allowed is None else torch.where(allowed, weights, 0.0)


class NotSoftmax(Halved):
    """Says that a fused softmax computes it."""

    form = "softmax"


@pytest.mark.parametrize("normalizer", [Halved(), Sparsemax(), Softmax.learned(), Monotonic()], ids=repr)
def test_right_normalizers_pass(normalizer: Normalizer) -> None:
    check_normalizer(normalizer)


@pytest.mark.parametrize(
    ("normalizer", "sentence"),
    [
        (Leaks(), "^masked weights: got"),
        (ReadsTheHidden(), "^masked weights: got nan"),
        (Negative(), "^weights of Negative are negative or not finite under"),
        (FeelsShifts(), "^FeelsShifts.shift_invariant: got True, but a shift changes weights$"),
        (NotSoftmax(), "differs from the definition: value "),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_normalizers_are_named(normalizer: Normalizer, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_normalizer(normalizer)


def test_a_normalizer_is_left_as_it_was() -> None:
    normalizer = Softmax.learned()
    check_normalizer(normalizer)
    assert all(parameter.dtype == torch.float32 for parameter in normalizer.parameters())


# ------------------------------------------------------------------------------------------------ parts together
def test_right_parts_pass() -> None:
    check_lowering(Parts(Gaussian(0.5), None, Causal(), Softmax(), Soft()))


@pytest.mark.parametrize(
    "parts",
    [
        Parts(WrongDotForm(), None, Full(), Softmax(), Soft()),
        Parts(Dot(), None, SmallSpan(before=1, after=1), Sparsemax(), Soft()),
        Parts(Dot(), None, Full(), NotSoftmax(), Soft()),
    ],
    ids=["score", "mask", "normalizer"],
)
def test_wrong_parts_are_named(parts: Parts) -> None:
    with pytest.raises(AssertionError, match="differs from the definition: value "):
        check_lowering(parts)
