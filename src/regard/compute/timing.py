"""Times that can be compared: contenders run in turn, medians with quartiles, ratios round by round.

Whatever slows a machine down for a while (heat, another process) slows all contenders of a round, and leaves the
ratios of that round alone. Nothing here needs torch.
"""

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from regard.errors import wrong

Run = Callable[[], object]


class Spread(NamedTuple):
    """The middle of some samples, the quartiles on both sides of it, and how many samples there were."""

    median: float
    low: float
    high: float
    runs: int


class Budget(NamedTuple):
    """How long to measure: rounds until `seconds` are over, but at least `least` of them and at most `most`.

    A sample repeats its call until it lasts `sample` seconds, so that the clock and a stray interrupt are small
    against it.
    """

    seconds: float = 10.0
    least: int = 7
    most: int = 100
    sample: float = 0.02


def summarize(samples: Sequence[float]) -> Spread:
    """Return median and quartiles.

    >>> summarize([4.0, 1.0, 2.0, 3.0, 100.0])
    Spread(median=3.0, low=2.0, high=4.0, runs=5)
    """
    if not samples:
        raise wrong("samples", "none", "at least one", "measure something")
    if len(samples) == 1:
        return Spread(samples[0], samples[0], samples[0], 1)
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Spread(median, low, high, len(samples))


def summarize_ratios(above: Sequence[float], below: Sequence[float]) -> Spread:
    """Return how many times longer `above` took than `below`, round by round.

    >>> summarize_ratios([2.0, 4.0, 9.0], [1.0, 2.0, 3.0]).median
    2.0
    """
    return summarize([a / b for a, b in zip(above, below, strict=True)])


def interleave(contenders: Mapping[str, Run], budget: Budget) -> dict[str, list[float]]:
    """Measure seconds a call, a sample of each contender in every round: A B C, A B C, …"""
    calls = {name: _count_calls(run, budget.sample) for name, run in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        end = time.perf_counter() + budget.seconds
        for turn in range(budget.most):
            if turn >= budget.least and time.perf_counter() >= end:
                break
            for name, run in contenders.items():
                samples[name].append(_sample(run, calls[name]))
    finally:
        if collecting:
            gc.enable()
    return samples


def _count_calls(run: Run, seconds: float) -> int:
    """Return how many calls fill a sample. The first call may compile, so it does not count."""
    run()
    once = _sample(run, 1)
    while once < seconds:
        calls = max(2, math.ceil(0.25 * seconds / max(once, 1e-7)))
        again = _sample(run, calls)
        if again >= 0.5 * once:  # it has stopped getting faster
            return max(1, math.ceil(seconds / max(again, 1e-7)))
        once = again
    return 1


def _sample(run: Run, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls
