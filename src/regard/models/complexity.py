"""What one layer costs against the length of its sequence: convolution, recurrence, self-attention.

At equal parameters the widths differ: a convolution has k·d² numbers, a recurrent layer 2·d², self-attention 4·d².
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from regard.operator import attend
from regard.timing import Spread, spread

WIDTH = 3  # positions under the filter of the convolution
ROUNDS = 7
FORMULAS = {
    "convolution": ("k n d²", "n / k", "1"),
    "recurrence": ("n d²", "n", "n"),
    "self-attention": ("n² d", "1", "1"),
}


class Cost(NamedTuple):
    """One layer at one length: seconds, multiplications and additions, and what has to wait for what."""

    length: int
    seconds: Spread
    operations: int
    path: int
    steps: int


class Convolution(nn.Module):
    """Each position sees its neighbors."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layer = nn.Conv1d(size, size, WIDTH, padding=WIDTH // 2)

    def forward(self, sequence: Tensor) -> Tensor:
        found: Tensor = self.layer(sequence.transpose(1, 2)).transpose(1, 2)
        return found


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
    """Each position sees all. Written out (`eager`), its operations can be counted; fused, torch counts none."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.inward, self.outward = nn.Linear(size, 3 * size, bias=False), nn.Linear(size, size, bias=False)
        self.backend: Literal["auto", "eager"] = "auto"

    def forward(self, sequence: Tensor) -> Tensor:
        query, key, value = self.inward(sequence).chunk(3, dim=-1)
        found: Tensor = self.outward(attend(query, key, value, backend=self.backend).output)
        return found


def layers(parameters: int) -> Mapping[str, tuple[nn.Module, int]]:
    """Each kind with the width at which it has about so many parameters.

    >>> {name: width for name, (_, width) in layers(16_384).items()}
    {'convolution': 74, 'recurrence': 90, 'self-attention': 64}
    """
    kinds: dict[str, tuple[Callable[[int], nn.Module], int]] = {
        "convolution": (Convolution, WIDTH),
        "recurrence": (Recurrence, 2),
        "self-attention": (SelfAttention, 4),
    }
    widths = {name: max(2, 2 * round(math.sqrt(parameters / matrices) / 2)) for name, (_, matrices) in kinds.items()}
    return {name: (kinds[name][0](width), width) for name, width in widths.items()}


def cost(layer: nn.Module, width: int, length: int) -> Cost:
    """Timed, counted, and its path walked; only a recurrence has steps that wait for one another."""
    sequence = torch.randn(1, length, width)
    with torch.no_grad():
        samples = [timed(layer, sequence) for _ in range(ROUNDS)]
        operations = counted(layer, sequence)
    steps = layer.steps if isinstance(layer, Recurrence) else 1
    return Cost(length, spread(samples[1:]), operations, longest_path(layer, sequence), steps)


def counted(layer: nn.Module, sequence: Tensor) -> int:
    """Multiplications and additions of matrices, as torch counts them."""
    if isinstance(layer, SelfAttention):
        layer.backend = "eager"
    with FlopCounterMode(display=False) as counter:
        layer(sequence)
    if isinstance(layer, SelfAttention):
        layer.backend = "auto"
    return int(counter.get_total_flops())


def timed(layer: nn.Module, sequence: Tensor) -> float:
    start = time.perf_counter()
    layer(sequence)
    return time.perf_counter() - start


def longest_path(layer: nn.Module, sequence: Tensor) -> int:
    """How many computations lie between the first position and the last: layers on top of one another until the last
    sees the first, times the steps within one.

    The first is no number, and so is all that sees it. A gradient would vanish over some hundred layers.
    """
    stream, depth = sequence[:1].clone(), 0
    stream[0, 0] = math.nan
    with torch.no_grad():
        while depth <= sequence.shape[1] and not bool(stream[0, -1].isnan().all()):
            stream, depth = layer(stream), depth + 1
    return depth * (layer.steps if isinstance(layer, Recurrence) else 1)


def exponent(costs: list[Cost]) -> float:
    """The slope of the logarithm of the operations over the last two lengths."""
    before, last = costs[-2:]
    return math.log(last.operations / before.operations) / math.log(last.length / before.length)
