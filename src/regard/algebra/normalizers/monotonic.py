"""Monotonic normalizers: each query continues from the key where the query before it stopped."""

from abc import abstractmethod

from regard.algebra.entries import list_as
from regard.algebra.normalizers.base import Normalizer
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Allowed, Distribution, Float, Scores, Tensor, check_lead, check_tensor
from regard.compute.kernels import monotonic
from regard.errors import wrong

Previous = Float[Tensor, "*#lead key"]


class SequentialNormalizer(Normalizer):
    """A normalizer whose rows depend on the row before.

    `previous`, `(*lead, keys)`, are the weights of the query before the first one of the call: a decoder passes those
    of its last step. Without them the first query starts at the first key.
    """

    form = "sequential"
    head_blind = True

    def __init__(self, *, previous: Previous | None = None) -> None:
        super().__init__()
        self.previous = previous

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        if self.previous is None:
            return
        check_tensor("normalizer.previous", self.previous)
        check_lead("normalizer.previous", tuple(self.previous.shape[:-1]), lead)
        if self.previous.shape[-1] != keys:
            got, fix = f"{self.previous.shape[-1]} weights", "pass weights[..., -1, :] of the step before"
            raise wrong("normalizer.previous", got, f"keys={keys}", fix)

    @abstractmethod
    def step(self, scores: Scores, allowed: Allowed | None, *, previous: Previous | None) -> Distribution:
        """Return the rows that come after `previous`; if that is None, the first query starts at the first key."""

    def forward(self, scores: Scores, allowed: Allowed | None, pairs: Pairs) -> Distribution:
        return self.step(scores, allowed, previous=self.previous)


@list_as("monotonic", aliases="raffel 单调")
class Monotonic(SequentialNormalizer):
    r"""The expected alignment of a walk along the keys that only goes forward: for training.

    $$ w_{ij} = p_{ij} \sum_{k \le j} w_{i-1,k} \prod_{l=k}^{j-1} (1 - p_{il}), \qquad p_{ij} = \sigma(s_{ij}) $$

    Raffel et al. 2017, eq. 8-11. Rows sum to one or less: a walk may run off the last key.

    Lowers to: itself, row after row, each row by a scan over the keys.
    """

    def step(self, scores: Scores, allowed: Allowed | None, *, previous: Previous | None) -> Distribution:
        return monotonic.align_expected(scores, allowed, previous)


@list_as("hard-monotonic", aliases="硬单调")
class HardMonotonic(SequentialNormalizer):
    r"""The walk itself, decided at every key: for inference after training with `Monotonic`.

    All weight on the first key at or after the previous choice with $\sigma(s_{ij}) \ge \tfrac12$; none if there is
    none. Raffel et al. 2017, algorithm 1. It has no gradient.

    Lowers to: itself, row after row.
    """

    def step(self, scores: Scores, allowed: Allowed | None, *, previous: Previous | None) -> Distribution:
        return monotonic.align_hard(scores, allowed, previous)


@list_as(
    "chunkwise", lambda _: ChunkwiseMonotonic(width=3), write="ChunkwiseMonotonic(width=4)", aliases="mocha 分块单调"
)
class ChunkwiseMonotonic(SequentialNormalizer):
    r"""Softmax over the last `width` keys up to the key where a monotonic walk stopped.

    $$ w_{ij} = \sum_{k=j}^{j+c-1} \alpha_{ik} \frac{e^{s_{ij}}}{\sum_{l=k-c+1}^{k} e^{s_{il}}} $$

    with $\alpha$ = the weights of `walk` on the same scores and $c$ = `width`. Chiu & Raffel 2018, eq. 10 (MoChA),
    with one score for both steps. Pass `walk=HardMonotonic()` at inference. These weights do not
    determine the walk, so a decoder steps the walk itself and calls `attend_chunks`; `previous` are weights of
    the walk.

    Lowers to: itself, row after row.
    """

    def __init__(
        self, width: int, *, walk: SequentialNormalizer | None = None, previous: Previous | None = None
    ) -> None:
        super().__init__(previous=previous)
        if width < 1:
            raise wrong("width", width, "at least 1", "use 1 for the walk alone, 4 or 8 for speech")
        self.width = width
        self.walk = Monotonic() if walk is None else walk

    def step(self, scores: Scores, allowed: Allowed | None, *, previous: Previous | None) -> Distribution:
        return self.attend_chunks(self.walk.step(scores, allowed, previous=previous), scores, allowed)

    def attend_chunks(self, walked: Distribution, scores: Scores, allowed: Allowed | None) -> Distribution:
        """Return the weights of the chunks that end where the walk stopped."""
        return monotonic.attend_chunkwise(walked, scores, self.width, allowed)
