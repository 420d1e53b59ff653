"""Aggregates: how weights combine the values. Soft averages them; the others choose one value for each query."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch

from regard.algebra.entries import list_as
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import Distribution, Float, Tensor
from regard.algebra.terms import Term, broadcast_per_head, drop_claims, has_new_definition
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
    """The weights to average the values with, and the `log_prob` of the choice if it was drawn."""

    weights: Distribution
    log_prob: Float[Tensor, "*#lead query"] | None = None


class Aggregate(Term):
    """How weights combine the values."""

    form: ClassVar[Literal["soft", "choice"]] = "choice"
    random: ClassVar[bool] = False
    whole_rows: ClassVar[bool] = True
    """Whether it needs every column of a row, also those that the mask hides from all queries of a block."""
    takes_largest: ClassVar[bool] = False
    """Whether it takes the first of the largest weights, so that their order is all that its value depends on."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if has_new_definition(cls, "forward"):
            drop_claims(cls, {"form": "choice", "whole_rows": True, "head_blind": False, "takes_largest": False})

    @abstractmethod
    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        """Return the weights to average with. Noise depends on `seed` and the indices of a pair, not on the block."""


class RowAggregate(Aggregate):
    """An aggregate whose rows do not depend on each other, on the head, or on columns that the mask hides."""

    whole_rows = False
    head_blind = True


@list_as("soft", aliases="weighted-sum expectation 软 软注意力 加权平均")
class Soft(RowAggregate):
    """The weighted average itself (soft attention)."""

    form = "soft"

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(weights)


@list_as("argmax", aliases="hard 硬 硬注意力")
class Argmax(RowAggregate):
    r"""The value of the largest weight; the gradient passes as if it were soft.

    $$ \hat w_i = \mathrm{onehot}(\operatorname{argmax}_j w_{ij}), \qquad \partial \hat w / \partial w := 1 $$

    Straight-through estimator: Bengio et al. 2013, §4. The first of equal weights is taken.
    """

    takes_largest = True

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(straight_through(weights, weights))


@list_as("gumbel", aliases="gumbel-softmax concrete")
class Gumbel(RowAggregate):
    r"""A soft sample: softmax of the log-weights plus Gumbel noise.

    $$ \hat w_{ij} \propto \exp\left((\log w_{ij} + g_{ij}) / \tau\right) $$

    with $g$ Gumbel noise and $\tau$ = `temperature`, one or one for each head. Jang et al. 2017, eq. 2; Maddison et al.
    2017.
    """

    random = True
    temperature: float | Tensor

    def __init__(self, temperature: float | Tensor = 1.0) -> None:
        super().__init__()
        self.hold_setting("temperature", temperature, fix_if_not_positive="start at 1.0 and anneal it")

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        return AggregateResult(self.draw_relaxed(weights, pairs, seed))

    def draw_relaxed(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> Distribution:
        """Return the soft sample."""
        perturbed = (safe_log(weights) + draw_gumbel(weights, pairs, seed)) / broadcast_per_head(self.temperature)
        logits = perturbed.masked_fill(~(weights > 0), float("-inf"))
        top = logits.detach().amax(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).min)
        powers = (logits - top).exp()
        return powers / powers.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)


@list_as("gumbel-straight", aliases="straight-through")
class StraightThroughGumbel(Gumbel):
    """A hard sample with the gradient of the soft one (straight-through Gumbel, Jang et al. 2017, §2.2)."""

    whole_rows = False  # claimed again, because `forward` is a new one
    head_blind = True

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        relaxed = self.draw_relaxed(weights, pairs, seed)
        return AggregateResult(straight_through(relaxed, relaxed))


@list_as("sample", aliases="reinforce stochastic 抽样 采样")
class Sample(RowAggregate):
    r"""One value drawn by its weight, with the logarithm of its probability for REINFORCE.

    $$ j_i \sim p_i, \qquad \mathtt{log\_prob}_i = \log p_{i j_i}, \qquad p_i = w_i / \textstyle\sum_j w_{ij} $$

    Hard attention of Xu et al. 2015, §4.1. The draw has no gradient; `log_prob` has. An empty row draws nothing,
    with `log_prob` 0.
    """

    random = True

    def forward(self, weights: Distribution, pairs: Pairs, seed: Tensor | None) -> AggregateResult:
        draw = (safe_log(weights.detach()) + draw_gumbel(weights, pairs, seed)).masked_fill(weights <= 0, float("-inf"))
        picked = one_hot(draw, weights > 0).to(weights.dtype)
        mass, total = (weights * picked).sum(-1), weights.sum(-1)
        is_drawn = mass > 0
        ratio = torch.where(is_drawn, mass, 1.0) / torch.where(is_drawn, total, 1.0)
        return AggregateResult(picked, ratio.log())


def safe_log(weights: Distribution) -> Distribution:
    """Return the logarithm of positive weights and 0 for the others, without NaN in the gradient."""
    return torch.where(weights > 0, weights, 1.0).log()


def draw_gumbel(weights: Distribution, pairs: Pairs, seed: Tensor | None) -> Distribution:
    """Return Gumbel noise for these pairs, by seed and indices."""
    if seed is None:
        raise wrong("seed", None, "a seed for a random aggregate", "let attend() draw it")
    return noise.draw_gumbel(seed, weights.shape[:-2], pairs.row[:, 0], pairs.column[0]).to(weights.dtype)


def one_hot(values: Distribution, some: Tensor) -> Tensor:
    """Return True at the first largest value of each row, and nowhere in a row without `some`."""
    best = values.argmax(-1, keepdim=True)
    return torch.zeros_like(some).scatter(-1, best, True) & some.any(-1, keepdim=True)


def straight_through(ranking: Distribution, soft: Distribution) -> Distribution:
    """Return the one-hot choice by `ranking`, with the gradient of `soft`."""
    hard = one_hot(ranking, ranking > 0).to(soft.dtype)
    return hard - soft.detach() + soft if soft.requires_grad else hard


@dataclass(frozen=True, slots=True)
class Baseline:
    """A moving average of the reward, with which REINFORCE compares each reward. It is never changed in place."""

    value: float = 0.0
    decay: float = 0.9
    batches: int = 0

    def update(self, reward: Float[Tensor, "..."]) -> "Baseline":
        """Return the baseline after this batch; the first batch sets it."""
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
    r"""Return the loss whose gradient is that of REINFORCE, and the next baseline.

    $$ L = -\operatorname{mean}\left[(R - b) \log p\right] - \lambda \operatorname{mean} H $$

    with $R$ = `reward` (no gradient flows through it), $b$ = the baseline **before** this batch (in the very first,
    the mean of the batch itself, which shrinks that one gradient by its n-th part), $H$ = `entropy` of the weights
    before the choice and $\lambda$ = `bonus`. Williams 1992; Xu et al. 2015, eq. 11-12.
    """
    if reward.dim() not in (0, log_prob.dim()):
        expected, fix = f"the axes of log_prob, {tuple(log_prob.shape)}", "write reward[:, None] for one of a sequence"
        raise wrong("reward", f"shape {tuple(reward.shape)}", expected, fix)
    advantage = reward.detach() - (baseline.value if baseline.batches else reward.detach().mean())
    loss = -(advantage * log_prob).mean()
    if entropy is not None:
        loss = loss - bonus * entropy.mean()
    return loss, baseline.update(reward)
