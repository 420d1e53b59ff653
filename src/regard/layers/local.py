"""Luong's local attention: a window around one position."""

import torch
from torch import nn

from regard.algebra.masks import CenteredWindow, Mask
from regard.algebra.normalizers import LocalGaussian, Softmax
from regard.algebra.shapes import Float, Tensor
from regard.compute.attend import AttentionResult
from regard.errors import wrong
from regard.layers.attention import Attention
from regard.layers.memory import Memory
from regard.layers.projections import build_linear


def monotonic_window(queries: int, *, radius: int, start: int = 0) -> Mask:
    r"""Return the mask of local-m: query $t$ sees the keys $t - D \dots t + D$.

    $$ p_t = t $$

    with $D$ = `radius` and $t$ counted from `start`, which is the number of the step in a decoder. Luong et al. 2015,
    §3.2 (*monotonic alignment*). Unlike `Window` it counts from the first key, not from the last.

    >>> monotonic_window(1, radius=1, start=2).table(1, 5).int()
    tensor([[0, 1, 1, 1, 0]], dtype=torch.int32)
    """
    return CenteredWindow(torch.arange(start, start + queries), radius)


class Center(nn.Module):
    r"""Predicts the center of attention from the query.

    $$ p_t = S \cdot \sigma(v^\top \tanh(W h_t)) $$

    with $h$ = `query`, $S$ = `lengths`, $W$ = `hidden` and $v$ = `position`. Luong et al. 2015, eq. 9.

    >>> Center(3)(torch.zeros(2, 5, 3), torch.tensor([4, 8]))[:, 0]
    tensor([2., 4.], grad_fn=<SelectBackward0>)
    """

    def __init__(self, size: int, *, hidden: int | None = None) -> None:
        super().__init__()
        self.hidden = build_linear(size, hidden or size, bias=False)
        self.position = build_linear(hidden or size, 1, bias=False)

    def forward(self, query: Float[Tensor, "*lead query size"], lengths: Tensor) -> Float[Tensor, "*lead query"]:
        share: Tensor = self.position(torch.tanh(self.hidden(query))).squeeze(-1)
        return lengths[..., None] * torch.sigmoid(share)


class LocalAttention(nn.Module):
    r"""Local-p: attention by a Gaussian around a predicted center, within a window.

    $$ w_{ts} = \mathrm{align}(h_t, \bar h_s) \exp\left(-\frac{(s - p_t)^2}{2 \sigma^2}\right), \qquad
    \sigma = D / 2 $$

    with `align` the softmax over the window of the layer's own score, $p$ = `center` and $D$ = `radius`. Luong et al.
    2015, eq. 10. The center is trained through the Gaussian; $S$ is the number of keys that are not padding.

    >>> local = LocalAttention(Attention(6, heads=2), radius=2, size=6)
    >>> x = torch.randn(5, 7, 6)
    >>> local(x, local.attention.remember(x)).shape
    torch.Size([5, 7, 6])
    """

    def __init__(self, attention: Attention, *, radius: int, size: int) -> None:
        super().__init__()
        if radius < 1:
            raise wrong("radius", radius, "at least 1", "use 10, as the paper does")
        normalizer = attention.mechanism.normalizer
        if type(normalizer) is not Softmax or isinstance(normalizer.temperature, Tensor) or normalizer.temperature != 1:
            expected, fix = (
                "Softmax(), which the Gaussian is put on",
                "leave it out; a factor of the score is a temperature",
            )
            raise wrong("mechanism.normalizer", type(normalizer).__name__, expected, fix)
        self.attention, self.radius = attention, radius
        self.center = Center(size)

    def attend(self, query: Float[Tensor, "*lead query size"], memory: Memory) -> AttentionResult:
        """Attend to the memory around the centers that the queries predict."""
        lengths = memory.mask.table(1, memory.length, device=query.device).sum((-1, -2))
        center: Tensor = self.center(query, lengths)
        normalizer = LocalGaussian(center[..., None, :], self.radius / 2)  # heads share the center
        mechanism = self.attention.mechanism.replace(normalizer=normalizer)
        return self.attention.attend(query, memory, mask=CenteredWindow(center, self.radius), mechanism=mechanism)

    def forward(self, query: Float[Tensor, "*lead query size"], memory: Memory) -> Float[Tensor, "*lead query out"]:
        return self.attend(query, memory).output
