"""The public checks pass what is right and name what is wrong, on parts broken in one way each."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest
import torch

from regard import (
    Aggregate,
    ALiBi,
    Argmax,
    Bias,
    Bilinear,
    Causal,
    Dense,
    Dot,
    DotForm,
    DotScore,
    Full,
    Gaussian,
    KindError,
    Laplacian,
    Lengths,
    Mask,
    Monotonic,
    Normalizer,
    Parts,
    Prior,
    Relative,
    Score,
    Soft,
    Softmax,
    Sparsemax,
    Window,
)
from regard.algebra.aggregates import AggregateResult, draw_gumbel, one_hot
from regard.algebra.biases.base import BiasForm
from regard.algebra.catalog import AGGREGATES, Sizes
from regard.algebra.normalizers.base import NormalizerForm
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Tensor
from regard.testing import (
    check_aggregate,
    check_backends,
    check_bias,
    check_mask,
    check_normalizer,
    check_part,
    check_score,
)

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


class Centered(Chebyshev):
    """Looks at the mean of the keys that it is given, and does not say that it counts them."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return super().forward(query, key - key.mean(-2, keepdim=True))


class Compared(Chebyshev):
    """A query beside the other queries."""

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return super().forward(query - query.mean(-2, keepdim=True), key)


class FalselyBlind(Chebyshev):
    """Counts heads."""

    head_blind = True

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return super().forward(query, key) * torch.arange(1.0, 1.0 + query.shape[-3])[:, None, None]


@pytest.mark.parametrize("score", [Chebyshev(), Gaussian(1.4), Bilinear(5, 5), Dot() + 0.5 * Laplacian()], ids=repr)
def test_right_scores_pass(score: Score) -> None:
    check_score(score)


@pytest.mark.parametrize(
    "score", [WrongDotForm(), WrongColumn(), WrongRow(), LostGradient(), WrongStream(), LostParameter()]
)
def test_wrong_scores_are_named(score: Score) -> None:
    with pytest.raises(AssertionError, match=f"^{type(score).__name__} × .* differs from the definition: value "):
        check_score(score)


@pytest.mark.parametrize(
    ("score", "sentence"),
    [
        (Centered(), "^Centered.uses_key_positions: got False, but the score of a key changes with the other keys$"),
        (Compared(), "^Compared: the score of a query changes with the other queries$"),
        (FalselyBlind(), "^FalselyBlind.head_blind: got True, but heads that are in groups get other numbers$"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_false_claims_of_scores_are_named(score: Score, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_score(score)


def test_a_score_is_left_as_it_was() -> None:
    score = Bilinear(5, 5)
    check_score(score)
    assert score.weight.dtype == torch.float32


# ------------------------------------------------------------------------------------------------ masks
@dataclass(frozen=True, slots=True)
class Strict(Mask):
    """Before, not at, its own position: a right mask of somebody's own."""

    def allows(self, pairs: Pairs) -> Tensor:
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

    def allows(self, pairs: Pairs) -> Tensor:
        return pairs.column <= torch.arange(pairs.rows[1] - pairs.rows[0])[:, None]


@dataclass(frozen=True, slots=True)
class FalselyCausal(Mask):
    def allows(self, pairs: Pairs) -> Tensor:
        return pairs.column <= pairs.position + 1

    @property
    def causal(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class FalselyColumnwise(Mask):
    def allows(self, pairs: Pairs) -> Tensor:
        return pairs.column <= pairs.position

    @property
    def columnwise(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class FalselyNarrow(Mask):
    def allows(self, pairs: Pairs) -> Tensor:
        return (pairs.column - pairs.position).abs() <= 1

    @property
    def width(self) -> int:
        return 2


@dataclass(frozen=True, slots=True)
class FalselyFree(Strict):
    """Right for as many queries as keys; a query alone sees all but its own position."""

    def allows_all(self, queries: int) -> bool:
        return queries == 1


@dataclass(frozen=True, slots=True)
class FalselyHidden(Strict):
    def find_visible_keys(self, keys: int, device: torch.device | str = "cpu") -> Tensor:
        return torch.arange(keys, device=device) > 0


@dataclass(frozen=True, slots=True)
class BlockColumns(Mask):
    """Counts from the first column of the block."""

    def allows(self, pairs: Pairs) -> Tensor:
        return torch.arange(pairs.columns[1] - pairs.columns[0])[None, :] <= pairs.position


@dataclass(frozen=True, slots=True, eq=False)
class LostLead(Mask):
    """One length for each sequence, of which layers with heads are told nothing."""

    lengths: Tensor

    def allows(self, pairs: Pairs) -> Tensor:
        return pairs.column < self.lengths[..., None, None]


@dataclass(frozen=True, slots=True, eq=False)
class LostHeads(LostLead):
    """Says that it has a lead axis, and puts no axis for heads behind it."""

    @property
    def lead(self) -> tuple[int, ...]:
        return tuple(self.lengths.shape)


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
        (FalselyFree(), "^FalselyFree.allows_all: got True for 1 of them, but a query does not see every key$"),
        (FalselyHidden(), "^FalselyHidden.find_visible_keys: got False for a key that a query sees$"),
        (BlockColumns(), "^BlockColumns: what is allowed in rows 0 … 0 and columns 3 … 7 changes if it is asked"),
        (LostLead(torch.tensor([[5], [7]])), r"^LostLead.lead: got \(\), but its table has the lead axes \(2, 1\)$"),
        (LostHeads(torch.tensor([[5], [7]])), "^LostHeads.add_head_axis: got another table than its own with one more"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_masks_are_named(mask: Mask, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_mask(mask)


# ------------------------------------------------------------------------------------------------ normalizers
class Halved(Normalizer):
    """A right normalizer of somebody's own: half a softmax."""

    form: ClassVar[NormalizerForm] = "rows"
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
    shift_invariant = True

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        weights = torch.sigmoid(scores)
        return weights if allowed is None else torch.where(allowed, weights, 0.0)


class NotSoftmax(Halved):
    """Says that a fused softmax computes it."""

    form: ClassVar[NormalizerForm] = "softmax"


class FeelsShiftsOfRows(Halved):
    """A shift of the whole table changes nothing; one of a row does."""

    shift_invariant = True

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        weights = torch.sigmoid(scores - scores.nan_to_num(-9.0).amax((-1, -2), keepdim=True))
        return weights if allowed is None else torch.where(allowed, weights, 0.0)


class FalselyNarrowRows(Halved):
    """A share of all columns, and says that it needs only those that are allowed."""

    shift_invariant = True
    whole_rows = False

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        return Halved.forward(self, scores, allowed, pairs) / scores.shape[-1]


class Columns(Halved):
    """A share of the columns, not of the rows: rows do not stand alone."""

    shift_invariant = False

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        hidden = scores if allowed is None else scores.masked_fill(~allowed, -1e3)
        weights = torch.softmax(hidden, -2)
        return weights if allowed is None else torch.where(allowed, weights, 0.0)


class OtherWithoutMask(Halved):
    """Forgets the factor where there is no mask."""

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        return torch.softmax(scores, -1) if allowed is None else Halved.forward(self, scores, allowed, pairs)


class CountsHeads(Halved):
    head_blind = True
    shift_invariant = True

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        return Halved.forward(self, scores * torch.arange(1.0, 1.0 + scores.shape[-3])[:, None, None], allowed, pairs)


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
        (FeelsShiftsOfRows(), "^FeelsShiftsOfRows.shift_invariant: got True, but a shift changes weights$"),
        (
            FalselyNarrowRows(),
            "^FalselyNarrowRows.whole_rows: got False, but weights change if columns that are hidden",
        ),
        (Columns(), "^Columns.form: got 'rows', but the weights of a row change with the other rows$"),
        (OtherWithoutMask(), "^OtherWithoutMask: the weights with allowed=None are not those with every pair allowed$"),
        (CountsHeads(), "^CountsHeads.head_blind: got True, but heads that are in groups get other numbers$"),
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


# ------------------------------------------------------------------------------------------------ biases
class Recent(Bias):
    """A right bias of somebody's own: learned, and less for each key that is further away."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = torch.nn.Parameter(torch.tensor(0.3))

    def forward(self, pairs: Pairs) -> Tensor:
        return -self.slope * (pairs.position - pairs.column).abs()


class ByKey(Recent):
    """A right number for each key, in its fast form too."""

    def forward(self, pairs: Pairs) -> Tensor:
        return (self.slope * pairs.column).sin()

    def form(self, *, causal: bool, shift_invariant: bool, keys: int) -> BiasForm:
        return "column"

    def column(self, pairs: Pairs) -> Tensor:
        return (self.slope * pairs.column[0]).sin()


class NotOfKeys(ByKey):
    """Differs from query to query, under every mask."""

    def forward(self, pairs: Pairs) -> Tensor:
        return (self.slope * (pairs.column - pairs.position)).sin()

    def form(self, *, causal: bool, shift_invariant: bool, keys: int) -> BiasForm:
        return "column" if causal and shift_invariant else "dense"


class OnlyIfCausal(ByKey):
    """A number for each key up to one for each query, among the keys before it; says so of all keys."""

    def forward(self, pairs: Pairs) -> Tensor:
        return -self.slope * (pairs.position - pairs.column).abs()

    def form(self, *, causal: bool, shift_invariant: bool, keys: int) -> BiasForm:
        return "column" if shift_invariant else "dense"

    def column(self, pairs: Pairs) -> Tensor:
        return self.slope * pairs.column[0]


class OnlyIfShifted(OnlyIfCausal):
    """The same, and says so of normalizers that feel a shift."""

    def form(self, *, causal: bool, shift_invariant: bool, keys: int) -> BiasForm:
        return "column" if causal else "dense"


class ColumnOfBlock(ByKey):
    """Counts from the first key of the block."""

    def column(self, pairs: Pairs) -> Tensor:
        return (self.slope * torch.arange(pairs.columns[1] - pairs.columns[0])).sin()


class WholeColumn(ByKey):
    """Gives one number too many."""

    def column(self, pairs: Pairs) -> Tensor:
        return (self.slope * torch.arange(pairs.keys + 1)).sin()


class LostSlope(ByKey):
    """Right in value, with no gradient in the fast form."""

    def column(self, pairs: Pairs) -> Tensor:
        return (self.slope.detach() * pairs.column[0]).sin()


class RowsOfBlock(Recent):
    """Counts from the first query of the block."""

    def forward(self, pairs: Pairs) -> Tensor:
        return self.slope * (pairs.row - pairs.rows[0]) * pairs.column


class FalselyColumnwiseBias(Recent):
    @property
    def columnwise(self) -> bool:
        return True


class ColumnwiseByCount(Recent):
    """One row for all queries, which depends on how many they are."""

    def forward(self, pairs: Pairs) -> Tensor:
        return self.slope * (pairs.column - pairs.queries)


class Undefined(Recent):
    def forward(self, pairs: Pairs) -> Tensor:
        return self.slope * (0.0 * pairs.column).log() * 0.0


@pytest.mark.parametrize("bias", [Recent(), ByKey(), ALiBi(3), Relative(3)], ids=repr)
def test_right_biases_pass(bias: Bias) -> None:
    check_bias(bias)


def test_biases_of_given_sizes_pass_in_those() -> None:
    check_bias(Prior(torch.linspace(-1, 1, 6)), keys=6)
    check_bias(Dense(torch.randn(4, 5, 6)), queries=5, keys=6, heads=4)


@pytest.mark.parametrize(
    ("bias", "sentence"),
    [
        (NotOfKeys(), "^NotOfKeys.form: got 'column' for causal=True, shift_invariant=True, but the number of a key"),
        (OnlyIfCausal(), "^OnlyIfCausal.form: got 'column' for causal=False, shift_invariant=True, but the number of"),
        (OnlyIfShifted(), "^OnlyIfShifted.form: got 'column' for causal=True, shift_invariant=False, but the number"),
        (ColumnOfBlock(), "^ColumnOfBlock.column: the numbers of rows 0 … 0 and columns 3 … 7 change if they are"),
        (WholeColumn(), "^WholeColumn.column: got 12 numbers, expected one for each of 11 keys$"),
        (LostSlope(), "^dot × LostSlope × .* differs from the definition: value "),
        (
            RowsOfBlock(),
            "^RowsOfBlock: the numbers of rows 2 … 4 and columns 0 … 4 change if they are asked for",
        ),
        (FalselyColumnwiseBias(), "^FalselyColumnwiseBias.columnwise: got True, but two queries are given different"),
        (ColumnwiseByCount(), "^ColumnwiseByCount.columnwise: got True, but two queries are given different numbers"),
        (Undefined(), "^Undefined: a number is NaN$"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_biases_are_named(bias: Bias, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_bias(bias)


# ------------------------------------------------------------------------------------------------ aggregates
class Sharper(Aggregate):
    """A right aggregate of somebody's own: squares, as shares of their row."""

    whole_rows: ClassVar[bool] = False
    head_blind: ClassVar[bool] = True

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        squares = weights.square()
        return AggregateResult(squares / squares.sum(-1, keepdim=True).clamp_min(1e-9))


class FalselySoft(Sharper):
    form: ClassVar[Literal["soft", "choice"]] = "soft"


class NeedsColumns(Sharper):
    """A share of all columns, and says that it needs only those that are allowed."""

    whole_rows: ClassVar[bool] = False

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights / weights.shape[-1])


class NeedsRows(Sharper):
    """The largest of all rows is the measure."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights / weights.amax((-1, -2), keepdim=True))


class OneHeadLess(Sharper):
    head_blind: ClassVar[bool] = True

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights * (torch.arange(weights.shape[-3]) != 1)[:, None, None])


class Smoothed(Sharper):
    """A little for every pair, also for hidden ones."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(0.9 * weights + 0.1 / pairs.keys)


class Dice(Sharper):
    """Draws from torch's generator."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights * torch.rand_like(weights))


class OwnDice(Dice):
    random: ClassVar[bool] = True


class WithoutSeed(Sharper):
    """Draws by the seed, and does not say that it wants one."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights * (draw_gumbel(weights, pairs, seed) > 0))


class LogOfNothing(Sharper):
    """−inf for a row that is empty."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        picked = one_hot(weights, weights > 0).to(weights.dtype)
        return AggregateResult(picked, (weights * picked).sum(-1).log())


class LogOfPairs(Sharper):
    """A log-probability for each pair."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights, weights.clamp_min(1e-9).log())


class Infinite(Sharper):
    """Divides by nothing."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights / weights.sum(-1, keepdim=True))


class Flat(Sharper):
    """Forgets the rows."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights.mean(-2))


@pytest.mark.parametrize("aggregate", [Sharper(), *(make(Sizes(4, 4, 4)) for make in AGGREGATES.values())], ids=repr)
def test_right_aggregates_pass(aggregate: Aggregate) -> None:
    check_aggregate(aggregate)


@pytest.mark.parametrize(
    ("aggregate", "sentence"),
    [
        (FalselySoft(), "^FalselySoft.form: got 'soft', but it changes the weights$"),
        (NeedsColumns(), "^NeedsColumns.whole_rows: got False, but weights change if columns that are hidden are left"),
        (NeedsRows(), "^NeedsRows: the choice of a row changes with the other rows$"),
        (OneHeadLess(), "^OneHeadLess.head_blind: got True, but heads that are in groups get other numbers$"),
        (Smoothed(), "^weights of Smoothed: got some for a pair that had none, which may be a hidden one$"),
        (Dice(), "^Dice.random: got False, but it chooses differently each time$"),
        (OwnDice(), "^OwnDice.random: got True, but it draws numbers that do not follow from the seed$"),
        (WithoutSeed(), "^WithoutSeed.random: got False, but it fails without a seed "),
        (LogOfNothing(), "^log_prob of LogOfNothing is not finite$"),
        (LogOfPairs(), r"^log_prob of LogOfPairs: got shape \(2, 3, 7, 11\), expected \(2, 3, 7\)$"),
        (Infinite(), "^weights of Infinite are not finite$"),
        (Flat(), r"^weights of Flat: got shape \(2, 3, 11\), expected \(2, 3, 7, 11\)$"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_wrong_aggregates_are_named(aggregate: Aggregate, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_aggregate(aggregate)


# ------------------------------------------------------------------------------------------------ blocks
class LongSoftmax(Softmax):
    """Right in small tables: what it leaves out begins with the hundredth query."""

    def forward(self, scores: Tensor, allowed: Tensor | None, pairs: Pairs) -> Tensor:
        assert pairs.columns == (0, pairs.keys)
        weights: Tensor = super().forward(scores, allowed, pairs)
        return weights * (1.0 if pairs.rows[0] < 100 else 0.5)


class LongArgmax(Argmax):
    """The same in an aggregate."""

    def forward(self, weights: Tensor, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights * (1.0 if pairs.rows[0] < 100 else 0.5))


class LongBias(Recent):
    """The same in a bias."""

    def forward(self, pairs: Pairs) -> Tensor:
        return super().forward(pairs) * (1.0 if pairs.rows[0] < 100 else 0.5)


@pytest.mark.parametrize("part", [LongSoftmax(), LongArgmax(), LongBias()], ids=repr)
def test_parts_are_tried_in_several_blocks(part: Normalizer | Aggregate | Bias) -> None:
    with pytest.raises(AssertionError, match="differs from the definition: value "):
        check_part(part)


def test_what_is_no_part_is_told_so() -> None:
    with pytest.raises(KindError, match=r"^part: got a Sizes, expected one of regard.Score, .*; fix: subclass one of"):
        check_part(Sizes(1, 1, 1))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ parts together
def test_right_parts_pass() -> None:
    check_backends(Parts(Gaussian(2.0), None, Causal(), Softmax(), Soft()))


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
        check_backends(parts)
