"""What complete hypotheses are ranked by, and the best that an incomplete one may still become."""

from dataclasses import dataclass
from typing import Literal

import torch

from regard.algebra.shapes import Bool, Float, Int, Tensor
from regard.errors import wrong

LEAST = 1e-10  # coverage of a position that was never looked at


@dataclass(frozen=True, slots=True)
class HypothesisScorer:
    r"""How a complete hypothesis is scored.

    $$ s(y) = \frac{\log p(y)}{f(|y|)} + \beta \sum_j \log \min\Bigl(1, \sum_i \alpha_{ij}\Bigr), \qquad f(n) =
    \Bigl(\frac{5 + n}{6}\Bigr)^a \text{ or } n^a $$

    with $|y|$ counting the end token, $a$ = `length_penalty` (0: long ones are not helped), $\beta$ = `coverage`, and $\alpha$
    the weights. Wu et al. 2016, eq. 14 (`kind="wu"`); `kind="average"` with $a = 1$ is the mean log-probability.

    >>> HypothesisScorer("average", length_penalty=1.0).compute_divisor(4)
    4.0
    """

    kind: Literal["wu", "average"] = "wu"
    length_penalty: float = 0.0
    coverage: float = 0.0

    def __post_init__(self) -> None:
        if self.length_penalty < 0:
            raise wrong("length", self.length_penalty, "at least 0", "use 0 for no help to long ones")
        if self.coverage < 0:
            raise wrong("coverage", self.coverage, "at least 0", "use 0 for no penalty")

    def compute_divisor(self, steps: int) -> float:
        """$f$ of a hypothesis of so many tokens, its end included."""
        return float(((5 + steps) / 6 if self.kind == "wu" else steps) ** self.length_penalty)

    def compute_divisors(self, steps: Int[Tensor, "*some"], like: Tensor) -> Float[Tensor, "*some"]:
        """The same for many."""
        steps = steps.to(like)
        return ((5 + steps) / 6 if self.kind == "wu" else steps) ** self.length_penalty

    def score(
        self, log_probs: Float[Tensor, "sentence some"], steps: int, covered: Float[Tensor, "sentence some"] | None
    ) -> Float[Tensor, "sentence some"]:
        """$s$ of hypotheses of so many tokens. `covered` is the sum over the source, from `compute_coverage_penalty`."""
        scores = log_probs / self.compute_divisor(steps)
        return scores if covered is None else scores + self.coverage * covered

    def bound_score(
        self, log_probs: Float[Tensor, " sentence"], limits: Int[Tensor, " sentence"]
    ) -> Float[Tensor, " sentence"]:
        """The best score that a hypothesis may still reach: no token makes it more probable, the longest ending helps
        it most, and coverage takes away nothing in the best case.
        """
        return log_probs / self.compute_divisors(limits + 1, log_probs)


def compute_coverage_penalty(
    seen: Float[Tensor, "sentence some source"], real: Bool[Tensor, "sentence source"]
) -> Float[Tensor, "sentence some"]:
    """The sum of log min(1, weight received) over the real positions."""
    logs = seen.clamp(LEAST, 1.0).log()
    return torch.where(real[:, None], logs, 0.0).sum(-1)
