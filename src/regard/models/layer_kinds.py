"""Kinds of layers that let positions of a sequence know of each other, and the formulas of their cost.

At equal parameters the widths differ: a convolution has k·d² numbers, a recurrent layer 2·d², self-attention 4·d².
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.algebra.masks import Full, Mask, Window
from regard.algebra.normalizers import RowTotal
from regard.algebra.scores import FeatureDot
from regard.compute.attend import attend

KERNEL = 3  # positions under the filter of the convolution, unless others are asked for
RADIUS = 16  # positions at each side that a window sees


class Formula(NamedTuple):
    """How something grows with the length n at the width d and the kernel k, in words and as a function of them."""

    text: str
    compute: Callable[[int, int, int], float]


def build_formulas(operations: Formula, path: Formula, *, waits: bool = False) -> Mapping[str, Formula]:
    """Return the formulas of all measured quantities; in a layer that waits, each position waits for the one before."""
    steps, parallel = (ALL, ONE) if waits else (ONE, ALL)
    return {
        "seconds": operations,
        "operations": operations,
        "longest path": path,
        "steps in a row": steps,
        "positions at once": parallel,
    }


ONE, ALL = Formula("1", lambda n, d, k: 1), Formula("n", lambda n, d, k: n)
FILTERED = Formula("k n d²", lambda n, d, k: k * n * d * d)
SQUARED = Formula("n d²", lambda n, d, k: n * d * d)
FORMULAS = {
    "convolution": build_formulas(FILTERED, Formula("n / k", lambda n, d, k: n / k)),
    "recurrence": build_formulas(SQUARED, ALL, waits=True),
    "self-attention": build_formulas(Formula("n² d", lambda n, d, k: n * n * d), ONE),
    "dilated convolution": build_formulas(FILTERED, Formula("log n / log k", lambda n, d, k: math.log(n, k))),
    "window": build_formulas(
        Formula("r n d", lambda n, d, k: RADIUS * n * d), Formula("n / r", lambda n, d, k: max(1.0, n / RADIUS))
    ),
    "linear attention": build_formulas(SQUARED, ONE),
}


class Convolution(nn.Module):
    """Each position sees its neighbors."""

    def __init__(self, size: int, kernel: int = KERNEL) -> None:
        super().__init__()
        self.layer = nn.Conv1d(size, size, kernel, padding=kernel // 2)

    def forward(self, sequence: Tensor) -> Tensor:
        found: Tensor = self.layer(sequence.transpose(1, 2)).transpose(1, 2)
        return found


class DilatedConvolution(Convolution):
    """Each position sees itself and k − 1 before it, which are k to the power of l apart in layer l of a stack."""

    def forward(self, sequence: Tensor, depth: int = 0) -> Tensor:
        kernel = self.layer.kernel_size[0]
        before = nn.functional.pad(sequence.transpose(1, 2), ((kernel - 1) * kernel**depth, 0))
        found = nn.functional.conv1d(before, self.layer.weight, self.layer.bias, dilation=kernel**depth)
        return found.transpose(1, 2)


class Recurrence(nn.Module):
    """Each position sees the state that the one before it left; written out, so that its steps can be counted."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.cell = nn.RNNCell(size, size)
        self.steps = 0

    def forward(self, sequence: Tensor) -> Tensor:
        state, states = sequence.new_zeros(len(sequence), sequence.shape[-1]), []
        self.steps = 0
        for vector in sequence.unbind(1):
            state = self.cell(vector, state)
            states.append(state)
            self.steps += 1
        return torch.stack(states, dim=1)


class SelfAttention(nn.Module):
    """Each position sees all. Written out, its operations can be counted; in kernels of our own torch counts none."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.inward, self.outward = nn.Linear(size, 3 * size, bias=False), nn.Linear(size, size, bias=False)
        self.mask: Mask = Full()

    def forward(self, sequence: Tensor) -> Tensor:
        query, key, value = self.inward(sequence).chunk(3, dim=-1)
        found: Tensor = self.outward(attend(query, key, value, mask=self.mask).output)
        return found

    def write_out(self, sequence: Tensor) -> Tensor:
        """Compute the same by products of matrices."""
        query, key, value = self.inward(sequence).chunk(3, dim=-1)
        weights = (query @ key.mT / math.sqrt(key.shape[-1])).softmax(-1)
        found: Tensor = self.outward(weights @ value)
        return found


class WindowAttention(SelfAttention):
    """Each position sees `RADIUS` positions at each side, and itself."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.mask = Window(RADIUS, RADIUS)

    def write_out(self, sequence: Tensor) -> Tensor:
        query, key, value = self.inward(sequence).chunk(3, dim=-1)
        near = [nn.functional.pad(each, (0, 0, RADIUS, RADIUS)).unfold(1, 2 * RADIUS + 1, 1) for each in (key, value)]
        scores = torch.einsum("bnd,bndw->bnw", query, near[0]) / math.sqrt(key.shape[-1])
        place = torch.arange(sequence.shape[1])[:, None] + torch.arange(-RADIUS, RADIUS + 1)
        weights = scores.masked_fill((place < 0) | (place >= sequence.shape[1]), -math.inf).softmax(-1)
        found: Tensor = self.outward(torch.einsum("bnw,bndw->bnd", weights, near[1]))
        return found


class LinearAttention(SelfAttention):
    """Each position sees all through a state of d × d numbers (Katharopoulos et al. 2020)."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.score, self.normalizer = FeatureDot(), RowTotal()

    def forward(self, sequence: Tensor) -> Tensor:
        query, key, value = self.inward(sequence).chunk(3, dim=-1)
        attended = attend(query, key, value, score=self.score, normalizer=self.normalizer)
        found: Tensor = self.outward(attended.output)
        return found

    def write_out(self, sequence: Tensor) -> Tensor:
        query, key, value = self.inward(sequence).chunk(3, dim=-1)
        query, key = self.score.map(query), self.score.map(key)
        total = query @ key.sum(1, keepdim=True).mT
        found: Tensor = self.outward(query @ (key.mT @ value) / total)
        return found


def build_layers(parameters: int, kernel: int = KERNEL) -> Mapping[str, tuple[nn.Module, int]]:
    """Return a layer of each kind with the width at which it has about so many parameters.

    >>> {name: width for name, (_, width) in build_layers(16_384).items()}["self-attention"]
    64
    """
    kinds: dict[str, tuple[Callable[[int], nn.Module], int]] = {
        "convolution": (lambda size: Convolution(size, kernel), kernel),
        "recurrence": (Recurrence, 2),
        "self-attention": (SelfAttention, 4),
        "dilated convolution": (lambda size: DilatedConvolution(size, kernel), kernel),
        "window": (WindowAttention, 4),
        "linear attention": (LinearAttention, 4),
    }
    widths = {name: max(2, 2 * round(math.sqrt(parameters / matrices) / 2)) for name, (_, matrices) in kinds.items()}
    return {name: (kinds[name][0](width), width) for name, width in widths.items()}
