"""Luong's local-p: a softmax that fades away from a predicted center."""

import torch

from regard.algebra.entries import list_as
from regard.algebra.normalizers.base import RowNormalizer
from regard.algebra.pairs import Pairs
from regard.algebra.shapes import (
    Allowed,
    Distribution,
    Float,
    Scores,
    Tensor,
    check_lead,
    check_tensor,
    describe,
    widen,
)
from regard.compute.kernels import simplex
from regard.errors import wrong, wrong_kind


@list_as(
    "local-p",
    lambda s: LocalGaussian(torch.linspace(0.3, s.keys - 1.2, s.queries), max(1.0, s.keys / 8)),
    write="LocalGaussian(center, deviation=5.0)",
    aliases="local luong-local predictive 局部预测",
)
class LocalGaussian(RowNormalizer):
    r"""Softmax times a Gaussian around a center, **not** renormalized.

    $$ w_{ij} = \mathrm{softmax}(s_i)_j \exp\left(-\frac{(j - p_i)^2}{2 \sigma^2}\right) $$

    with $p$ = `center`, `(*lead, queries)`, predicted by the model and trained through these weights, and $\sigma$ =
    `deviation`, which the paper sets to half the radius of the window. Luong et al. 2015, eq. 10. The window itself
    is the mask `CenteredWindow(center, radius)`. Adding the logarithm of the Gaussian to the score would
    renormalize, which is not the same.

    Lowers to: two fused calls, with and without the Gaussian in the score, and the ratio of their totals.
    """

    form = "local-p"

    def __init__(self, center: Float[Tensor, "*lead query"], deviation: float) -> None:
        super().__init__()
        check_tensor("center", center)
        if not isinstance(deviation, int | float):
            raise wrong_kind("deviation", describe(deviation), "one number for all heads", "write 5.0")
        if not deviation > 0:
            raise wrong("deviation", deviation, "a number above 0", "use half the radius of the window")
        self.center, self.deviation = center, deviation

    def log_gaussian(self, pairs: Pairs, like: Tensor) -> Float[Tensor, "..."]:
        """Return the logarithm of the Gaussian for these pairs, with the digits of `like` if it has more."""
        # In half precision positions above 2,048 would be rounded to even numbers, above 4,096 to every fourth.
        center = widen(self.get_centers(pairs, like)[..., None])
        return -0.5 * ((pairs.column - center) / self.deviation) ** 2

    def get_centers(self, pairs: Pairs, like: Tensor) -> Float[Tensor, "..."]:
        """Return the centers of the rows of these pairs, in the dtype of `like` if that is wider."""
        return self.center[..., pairs.row[:, 0]].to(torch.promote_types(self.center.dtype, like.dtype))

    def forward(self, scores: Scores, allowed: Allowed | None, pairs: Pairs) -> Distribution:
        return (simplex.softmax(widen(scores), allowed) * self.log_gaussian(pairs, scores).exp()).to(scores.dtype)

    def check(self, lead: tuple[int, ...], queries: int, keys: int) -> None:
        check_lead("normalizer.center", tuple(self.center.shape[:-1]), lead)
        if self.center.shape[-1] != queries:
            fix = "give one center for each query"
            raise wrong("normalizer.center", f"{self.center.shape[-1]} centers", f"queries={queries}", fix)
