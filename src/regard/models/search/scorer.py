"""Scores of complete hypotheses, and bounds of the scores that incomplete ones can reach."""

from dataclasses import dataclass
from typing import Literal

import torch

from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.errors import wrong

LEAST = 1e-10  # coverage of a position that received no attention


@dataclass(frozen=True, slots=True)
class HypothesisScorer:
    r"""Scores complete hypotheses.

    $$ s(y) = \frac{\log p(y)}{f(|y|)} + \beta \sum_j \log \min\Bigl(1, \sum_i \alpha_{ij}\Bigr), \qquad f(n) =
    \Bigl(\frac{5 + n}{6}\Bigr)^a \text{ or } n^a $$

    with $|y|$ counting the end token, $a$ = `length_penalty` (0: none), $\beta$ = `coverage`, and $\alpha$ the weights.
    Wu et al. 2016, eq. 14 (`kind="wu"`); `kind="average"` with $a = 1$ is the mean log-probability.

    >>> HypothesisScorer("average", length_penalty=1.0).compute_divisor(4)
    4.0
    """

    kind: Literal["wu", "average"] = "wu"
    length_penalty: float = 0.0
    coverage: float = 0.0

    def __post_init__(self) -> None:
        if self.length_penalty < 0:
            raise wrong("length", self.length_penalty, "at least 0", "use 0 for no length penalty")
        if self.coverage < 0:
            raise wrong("coverage", self.coverage, "at least 0", "use 0 for no penalty")

    def compute_divisor(self, steps: int) -> float:
        """Return $f$ of a hypothesis of so many tokens, its end included."""
        return float(((5 + steps) / 6 if self.kind == "wu" else steps) ** self.length_penalty)

    def compute_divisors(self, steps: Int[Tensor, "*some"], like: Tensor) -> Float[Tensor, "*some"]:
        """Return $f$ of many hypotheses."""
        steps = steps.to(like)
        return ((5 + steps) / 6 if self.kind == "wu" else steps) ** self.length_penalty

    def score(
        self, log_probs: Float[Tensor, "sentence some"], steps: int, covered: Float[Tensor, "sentence some"] | None
    ) -> Float[Tensor, "sentence some"]:
        """Return $s$ of hypotheses of so many tokens; `covered` comes from `compute_coverage_penalty`."""
        scores = log_probs / self.compute_divisor(steps)
        return scores if covered is None else scores + self.coverage * covered

    def bound_score(
        self, log_probs: Float[Tensor, " sentence"], limits: Int[Tensor, " sentence"]
    ) -> Float[Tensor, " sentence"]:
        """Return the best score that a hypothesis can still reach: no token makes it more probable, the latest ending
        divides by most, and coverage costs nothing in the best case.
        """
        return log_probs / self.compute_divisors(limits + 1, log_probs)


def compute_coverage_penalty(
    coverage: Float[Tensor, "sentence some source"], real: Bool[Tensor, "sentence source"]
) -> Float[Tensor, "sentence some"]:
    """Return the sum of log min(1, weight received) over the positions that are not padding."""
    logs = coverage.clamp(LEAST, 1.0).log()
    return torch.where(real[:, None], logs, 0.0).sum(-1)
