"""Readings: how weights choose among the values. Soft averages them; the others pick one value for each query."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch

from regard.algebra.entries import list_as
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Distribution, Float, Tensor
from regard.algebra.terms import Term, broadcast_per_head, check_setting, drop_claims, has_new_definition
from regard.compute.kernels import noise
from regard.errors import wrong

__all__ = [
    "Aggregate",
    "AggregateResult",
    "Argmax",
    "Baseline",
    "Gumbel",
    "Sample",
    "Soft",
    "StraightThroughGumbel",
    "reinforce",
]


class AggregateResult(NamedTuple):
    """What a reading makes of the weights; `log_prob` of the pick, where it was drawn."""

    weights: Distribution
    log_prob: Float[Tensor, "*#lead query"] | None = None


class Aggregate(Term):
    """How weights choose among the values."""

    form: ClassVar[Literal["soft", "choice"]] = "choice"
    random: ClassVar[bool] = False
    whole_rows: ClassVar[bool] = True
    """Whether it must be given every column of a row, those too that the mask hides from all queries of a block."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "forward"):
            drop_claims(cls, {"form": "choice", "whole_rows": True, "head_blind": False})

    @abstractmethod
    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        """The weights to average with. `seed` addresses the noise, so that any block draws what the whole would."""


@list_as("soft")
class Soft(Aggregate):
    """The weighted average itself (soft attention)."""

    form: ClassVar[Literal["soft", "choice"]] = "soft"
    whole_rows: ClassVar[bool] = False
    head_blind: ClassVar[bool] = True

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights)


@list_as("argmax")
class Argmax(Aggregate):
    r"""The value of the largest weight; the gradient passes as if the reading were soft.

    $$ \hat w_i = \mathrm{onehot}(\operatorname{argmax}_j w_{ij}), \qquad \partial \hat w / \partial w := 1 $$

    Straight-through estimator: Bengio et al. 2013, §4. The first of equal weights is taken.
    """

    whole_rows: ClassVar[bool] = False
    head_blind: ClassVar[bool] = True

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(straight_through(weights, weights))


@list_as("gumbel")
class Gumbel(Aggregate):
    r"""A soft sample: softmax of the log-weights plus Gumbel noise.

    $$ \hat w_{ij} \propto \exp\left((\log w_{ij} + g_{ij}) / \tau\right) $$

    with $g$ Gumbel noise and $\tau$ = `temperature`, one or one for each head. Jang et al. 2017, eq. 2; Maddison et al.
    2017.
    """

    random: ClassVar[bool] = True
    whole_rows: ClassVar[bool] = False
    head_blind: ClassVar[bool] = True

    per_head_settings: ClassVar[tuple[str, ...]] = ("temperature",)

    def __init__(self, temperature: float | Tensor = 1.0) -> None:
        super().__init__()
        check_setting("temperature", temperature)
        if not isinstance(temperature, Tensor) and not temperature > 0:
            raise wrong("temperature", temperature, "a number above 0", "start at 1.0 and anneal it")
        self.temperature = temperature

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(self.draw_relaxed(weights, pairs, seed))

    def draw_relaxed(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> Distribution:
        """The soft sample."""
        some = weights > 0
        perturbed = (safe_log(weights) + draw_gumbel(weights, pairs, seed)) / broadcast_per_head(self.temperature)
        logits = perturbed.masked_fill(~some, float("-inf"))
        top = logits.detach().amax(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).min)
        powers = (logits - top).exp()
        return powers / powers.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)


@list_as("gumbel-straight")
class StraightThroughGumbel(Gumbel):
    """A hard sample with the gradient of the soft one (straight-through Gumbel, Jang et al. 2017, §2.2)."""

    whole_rows: ClassVar[bool] = False
    head_blind: ClassVar[bool] = True

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        relaxed = self.draw_relaxed(weights, pairs, seed)
        return AggregateResult(straight_through(relaxed, relaxed))


@list_as("sample")
class Sample(Aggregate):
    r"""One value drawn by its weight, with the logarithm of its probability for REINFORCE.

    $$ j_i \sim p_i, \qquad \mathtt{log\_prob}_i = \log p_{i j_i}, \qquad p_i = w_i / \textstyle\sum_j w_{ij} $$

    Hard attention of Xu et al. 2015, §4.1. The draw has no gradient; `log_prob` has. An empty row draws nothing,
    with `log_prob` 0.
    """

    random: ClassVar[bool] = True
    whole_rows: ClassVar[bool] = False
    head_blind: ClassVar[bool] = True

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        draw = (safe_log(weights.detach()) + draw_gumbel(weights, pairs, seed)).masked_fill(weights <= 0, float("-inf"))
        picked = one_hot(draw, weights > 0).to(weights.dtype)
        mass, total = (weights * picked).sum(-1), weights.sum(-1)
        live = mass > 0
        ratio = torch.where(live, mass, 1.0) / torch.where(live, total, 1.0)
        return AggregateResult(picked, ratio.log())


def safe_log(weights: Distribution) -> Distribution:
    """The logarithm where there is one, 0 elsewhere, with no NaN in the gradient."""
    return torch.where(weights > 0, weights, 1.0).log()


def draw_gumbel(weights: Distribution, pairs: Pairs, seed: Tensor | None) -> Distribution:
    """Gumbel noise for these pairs, from their own address."""
    if seed is None:
        raise wrong("seed", None, "a seed for a random reading", "let attend() draw it")
    return noise.draw_gumbel(seed, weights.shape[:-2], pairs.row[:, 0], pairs.column[0]).to(weights.dtype)


def one_hot(values: Distribution, some: Tensor) -> Tensor:
    """True at the first largest value of each row, and nowhere in a row that has none."""
    best = values.argmax(-1, keepdim=True)
    return torch.zeros_like(some).scatter(-1, best, True) & some.any(-1, keepdim=True)


def straight_through(ranking: Distribution, soft: Distribution) -> Distribution:
    """One-hot in value, `soft` in gradient."""
    hard = one_hot(ranking, ranking > 0).to(soft.dtype)
    return hard - soft.detach() + soft if soft.requires_grad else hard


@dataclass(frozen=True, slots=True)
class Baseline:
    """A moving average of the reward: what REINFORCE compares each reward with. Passed on, never stashed."""

    value: float = 0.0
    decay: float = 0.9
    batches: int = 0

    def update(self, reward: Float[Tensor, "..."]) -> "Baseline":
        """The baseline after this batch; the first batch sets it."""
        mean = float(reward.detach().mean())
        value = mean if self.batches == 0 else self.decay * self.value + (1 - self.decay) * mean
        return Baseline(value, self.decay, self.batches + 1)


def reinforce(
    log_prob: Float[Tensor, "..."],
    reward: Float[Tensor, "..."],
    baseline: Baseline,
    *,
    entropy: Float[Tensor, "..."] | None = None,
    bonus: float = 0.01,
) -> tuple[Tensor, Baseline]:
    r"""The loss whose gradient is REINFORCE's, and the next baseline.

    $$ L = -\operatorname{mean}\left[(R - b) \log p\right] - \lambda \operatorname{mean} H $$

    with $R$ = `reward` (no gradient flows through it), $b$ = the baseline **before** this batch (in the very first,
    the mean of the batch itself, which shrinks that one gradient by its n-th part), $H$ = `entropy` of the weights
    before the reading and $\lambda$ = `bonus`. Williams 1992; Xu et al. 2015, eq. 11-12.
    """
    if reward.dim() not in (0, log_prob.dim()):
        expected, fix = f"the axes of log_prob, {tuple(log_prob.shape)}", "write reward[:, None] for one of a sequence"
        raise wrong("reward", f"shape {tuple(reward.shape)}", expected, fix)
    advantage = reward.detach() - (baseline.value if baseline.batches else reward.detach().mean())
    loss = -(advantage * log_prob).mean()
    if entropy is not None:
        loss = loss - bonus * entropy.mean()
    return loss, baseline.update(reward)
