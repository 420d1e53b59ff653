"""The cost of one layer against the length of its sequence, measured: convolution, recurrence, kinds of attention."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from regard.compute.timing import Spread, summarize
from regard.models.layer_kinds import FORMULAS, KERNEL, DilatedConvolution, Recurrence, SelfAttention, build_layers

ROUNDS = 7


class LayerCost(NamedTuple):
    """One layer at one length: seconds of one core, operations, the longest path, and the steps in a row."""

    length: int
    seconds: Spread
    operations: int
    path: int
    steps: int


class CostCurve(NamedTuple):
    """One kind of layer over all lengths: what was measured, and the formulas, scaled to meet it at the last length."""

    width: int
    measured: Mapping[str, list[float]]
    expected: Mapping[str, list[float]]


def measure_curves(parameters: int, lengths: Sequence[int], kernel: int = KERNEL) -> dict[str, CostCurve]:
    """Measure the cost of each kind at each length, with one thread, so that free cores do not count."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        kinds = build_layers(parameters, kernel).items()
        return {
            name: build_curve(name, width, [measure_cost(layer, width, n) for n in lengths], kernel)
            for name, (layer, width) in kinds
        }
    finally:
        torch.set_num_threads(threads)


def build_curve(name: str, width: int, costs: Sequence[LayerCost], kernel: int = KERNEL) -> CostCurve:
    """Return the costs at all lengths, beside the formulas."""
    measured = {
        "seconds": [one.seconds.median for one in costs],
        "operations": [float(one.operations) for one in costs],
        "longest path": [float(one.path) for one in costs],
        "steps in a row": [float(one.steps) for one in costs],
        "positions at once": [one.length / one.steps for one in costs],
    }
    expected = {}
    for quantity, values in measured.items():
        formula = [FORMULAS[name][quantity].compute(one.length, width, kernel) for one in costs]
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
    compute = layer.write_out if isinstance(layer, SelfAttention) else layer
    with FlopCounterMode(display=False) as counter:
        compute(sequence)
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
            stream = layer(stream, depth) if isinstance(layer, DilatedConvolution) else layer(stream)
            depth += 1
    return depth * (layer.steps if isinstance(layer, Recurrence) else 1)


def estimate_exponent(lengths: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of the logarithm over the last two lengths.

    >>> estimate_exponent([2, 4, 8], [1.0, 3.0, 12.0])
    2.0
    """
    return math.log(values[-1] / values[-2]) / math.log(lengths[-1] / lengths[-2])
