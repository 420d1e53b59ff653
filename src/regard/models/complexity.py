"""The cost of one layer against the length of its sequence: convolution, recurrence, self-attention.

At equal parameters the widths differ: a convolution has k·d² numbers, a recurrent layer 2·d², self-attention 4·d².
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from regard.compute.attend import attend
from regard.compute.timing import Spread, summarize

WIDTH = 3  # positions under the filter of the convolution
ROUNDS = 7


class LayerCost(NamedTuple):
    """One layer at one length: seconds of one core, operations, the longest path, and the steps in a row."""

    length: int
    seconds: Spread
    operations: int
    path: int
    steps: int


class Formula(NamedTuple):
    """How something grows with the length n at the width d, in words and as a function of both."""

    text: str
    compute: Callable[[int, int], float]


class CostCurve(NamedTuple):
    """One kind of layer over all lengths: what was measured, and the formulas, scaled to meet it at the last length."""

    width: int
    measured: Mapping[str, list[float]]
    expected: Mapping[str, list[float]]


def build_formulas(operations: Formula, path: Formula, steps: Formula) -> Mapping[str, Formula]:
    """Return the formulas of all measured quantities."""
    return {"seconds": operations, "operations": operations, "longest path": path, "steps in a row": steps}


ONE, ALL = Formula("1", lambda n, d: 1), Formula("n", lambda n, d: n)
FORMULAS = {
    "convolution": build_formulas(
        Formula("k n d²", lambda n, d: WIDTH * n * d * d), Formula("n / k", lambda n, d: n / WIDTH), ONE
    ),
    "recurrence": build_formulas(Formula("n d²", lambda n, d: n * d * d), ALL, ALL),
    "self-attention": build_formulas(Formula("n² d", lambda n, d: n * n * d), ONE, ONE),
}


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


def build_layers(parameters: int) -> Mapping[str, tuple[nn.Module, int]]:
    """Return a layer of each kind with the width at which it has about so many parameters.

    >>> {name: width for name, (_, width) in build_layers(16_384).items()}
    {'convolution': 74, 'recurrence': 90, 'self-attention': 64}
    """
    kinds: dict[str, tuple[Callable[[int], nn.Module], int]] = {
        "convolution": (Convolution, WIDTH),
        "recurrence": (Recurrence, 2),
        "self-attention": (SelfAttention, 4),
    }
    widths = {name: max(2, 2 * round(math.sqrt(parameters / matrices) / 2)) for name, (_, matrices) in kinds.items()}
    return {name: (kinds[name][0](width), width) for name, width in widths.items()}


def measure_curves(parameters: int, lengths: Sequence[int]) -> dict[str, CostCurve]:
    """Measure the cost of each kind at each length, with one thread, so that free cores do not count."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        kinds = build_layers(parameters).items()
        return {
            name: build_curve(name, width, [measure_cost(layer, width, n) for n in lengths])
            for name, (layer, width) in kinds
        }
    finally:
        torch.set_num_threads(threads)


def build_curve(name: str, width: int, costs: Sequence[LayerCost]) -> CostCurve:
    """Return the costs at all lengths, beside the formulas."""
    measured = {
        "seconds": [one.seconds.median for one in costs],
        "operations": [float(one.operations) for one in costs],
        "longest path": [float(one.path) for one in costs],
        "steps in a row": [float(one.steps) for one in costs],
    }
    expected = {}
    for quantity, values in measured.items():
        formula = [FORMULAS[name][quantity].compute(one.length, width) for one in costs]
        expected[quantity] = [values[-1] * value / formula[-1] for value in formula]
    return CostCurve(width, measured, expected)


def measure_cost(layer: nn.Module, width: int, length: int) -> LayerCost:
    """Measure the cost of a layer at one length; only a recurrence has steps that wait for one another."""
    sequence = torch.randn(1, length, width)
    with torch.no_grad():
        samples = [time_layer(layer, sequence) for _ in range(ROUNDS)]
        operations = count_operations(layer, sequence)
    steps = layer.steps if isinstance(layer, Recurrence) else 1
    return LayerCost(length, summarize(samples[1:]), operations, measure_longest_path(layer, sequence), steps)


def count_operations(layer: nn.Module, sequence: Tensor) -> int:
    """Count the multiplications and additions of matrices, as torch counts them."""
    if isinstance(layer, SelfAttention):
        layer.backend = "eager"
    with FlopCounterMode(display=False) as counter:
        layer(sequence)
    if isinstance(layer, SelfAttention):
        layer.backend = "auto"
    return int(counter.get_total_flops())


def time_layer(layer: nn.Module, sequence: Tensor) -> float:
    """Return the seconds of the processor: other processes do not count."""
    start = time.process_time()
    layer(sequence)
    return time.process_time() - start


def measure_longest_path(layer: nn.Module, sequence: Tensor) -> int:
    """Count the computations between the first position and the last: the layers until the last sees the first, times
    the steps within one.

    The first position is NaN, and so is all that sees it. A gradient would vanish over some hundred layers.
    """
    stream, depth = sequence[:1].clone(), 0
    stream[0, 0] = math.nan
    with torch.no_grad():
        while depth <= sequence.shape[1] and not bool(stream[0, -1].isnan().all()):
            stream, depth = layer(stream), depth + 1
    return depth * (layer.steps if isinstance(layer, Recurrence) else 1)


def estimate_exponent(lengths: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of the logarithm over the last two lengths.

    >>> estimate_exponent([2, 4, 8], [1.0, 3.0, 12.0])
    2.0
    """
    return math.log(values[-1] / values[-2]) / math.log(lengths[-1] / lengths[-2])
