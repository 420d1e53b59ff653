r"""α-entmax below α = 1: flatter than softmax, with tails that fall by a power instead of an exponential.

$$ p_j = (1 + u + a (\max s - s_j))^{-1/a}, \qquad a = 1 - \alpha \in (0, 1) $$

with $1 + u = e^{a t}$ such that the row sums to one. The sum falls from at least 1 at $t = 0$ to at most 1 at
$t = \log n$, so that $t$ is found by bisection; two steps of Newton's method, which change no digit, give it its
derivatives. Written with `expm1` and `log1p`, so that digits last as α → 1.
"""

import torch
from torch import Tensor

from regard.algebra.shapes import Bool, Float

STEPS = 60  # halvings: as many as float64 has digits, and some


def flat_entmax(
    scores: Float[Tensor, "*#lead L S"], allowed: Bool[Tensor, "*#lead #L #S"] | None, alpha: Float[Tensor, "..."]
) -> Float[Tensor, "*lead L S"]:
    """Return the weights for α between 0 and 1, in float64; rows in which nothing is allowed are zero.

    >>> flat_entmax(torch.zeros(1, 2), None, torch.tensor(0.5))
    tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    exact, curve = scores.double(), (1 - alpha).double()
    allowed = torch.ones_like(exact, dtype=torch.bool) if allowed is None else allowed.expand(exact.shape)
    largest = exact.masked_fill(~allowed, -torch.inf).amax(-1, keepdim=True)
    largest = torch.where(largest == -torch.inf, 0.0, largest).detach()
    gaps = curve * (largest - torch.where(allowed, exact, largest))
    lowest = torch.zeros_like((gaps + curve)[..., :1]).detach()
    highest = allowed.sum(-1, keepdim=True).clamp_min(1).double().log() + lowest
    with torch.no_grad():
        for _ in range(STEPS):
            middle = (lowest + highest) / 2
            above = _weigh(gaps, curve, middle, allowed).sum(-1, keepdim=True) > 1
            lowest, highest = torch.where(above, middle, lowest), torch.where(above, highest, middle)
    place = (lowest + highest) / 2
    for _ in range(2):
        weights = _weigh(gaps, curve, place, allowed)
        slope = (weights * (curve * place).exp() / ((curve * place).exp() + gaps)).sum(-1, keepdim=True)
        place = place + (weights.sum(-1, keepdim=True) - 1) / torch.where(slope == 0, 1.0, slope)
    return _weigh(gaps, curve, place, allowed)


def _weigh(gaps: Tensor, curve: Tensor, place: Tensor, allowed: Tensor) -> Tensor:
    """Return the weights with the total at that place, whether or not they sum to one."""
    logarithm = -torch.log1p(torch.expm1(curve * place) + gaps) / curve
    return torch.where(allowed, logarithm.exp(), 0.0)
