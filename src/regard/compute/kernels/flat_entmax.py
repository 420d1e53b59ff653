r"""α-entmax below α = 1: flatter than softmax, with tails that fall by a power instead of an exponential.

$$ p_j = (1 + u + a (\max s - s_j))^{-1/a}, \qquad a = 1 - \alpha \in (0, 1) $$

with $1 + u = e^{a t}$ such that the row sums to one. As a function of $v = 1 + u$, the sum to the power $-a$ is a
power mean of negative order: it rises and is concave, so that Newton's method comes from $v = 1$ to the root without
passing it, and is there at once if all scores are equal. Two further steps, which change no digit, give $t$ its
derivatives. Written with `expm1` and `log1p`, so that digits last as α → 1.
"""

import torch
from torch import Tensor

from regard.algebra.shapes import Bool, Float

STEPS = 12  # of Newton's method: 8 are the most that were needed, for α from 1e-6 to 1 - 1e-9 and 30,000 keys


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
    place = torch.zeros_like((gaps + curve)[..., :1]).detach()
    with torch.no_grad():
        for _ in range(STEPS):
            total, slope = _sum_weights(gaps, curve, place, allowed)
            place = place + torch.log1p(total * torch.expm1(curve * total.log()) / slope) / curve
    for _ in range(2):
        total, slope = _sum_weights(gaps, curve, place, allowed)
        place = place + (total - 1) / slope
    return _weigh(gaps, curve, place, allowed)


def _sum_weights(gaps: Tensor, curve: Tensor, place: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum of the weights with the total at that place, and how fast it falls; both are 1 in empty rows."""
    weights, power = _weigh(gaps, curve, place, allowed), (curve * place).exp()
    total, slope = weights.sum(-1, keepdim=True), (weights * power / (power + gaps)).sum(-1, keepdim=True)
    return torch.where(total == 0, 1.0, total), torch.where(slope == 0, 1.0, slope)


def _weigh(gaps: Tensor, curve: Tensor, place: Tensor, allowed: Tensor) -> Tensor:
    """Return the weights with the total at that place, whether or not they sum to one."""
    logarithm = -torch.log1p(torch.expm1(curve * place) + gaps) / curve
    return torch.where(allowed, logarithm.exp(), 0.0)
