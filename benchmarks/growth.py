"""Measure how a backend grows: time in this process, memory in fresh ones, lengths doubled while it is bearable."""

import statistics
import time
from collections.abc import Callable, Sequence
from math import log2

from benchmarks.claim import Curve, Growth
from benchmarks.measurement import Scale, build_call
from benchmarks.memory import MemoryRequest, measure_memory
from benchmarks.results import CurveResult, Point
from regard.compute.timing import Budget, interleave, summarize

LAST = 4  # points that the slope is fitted to: at short lengths every backend is all overhead
SLOW = 2.0  # seconds after which one call is enough: there is nothing left to warm up


def measure_growth(claim: str, growth: Growth, scale: Scale) -> list[CurveResult]:
    """Measure every curve."""
    return [_measure_curve(claim, name, curve, growth.shortest, scale) for name, curve in growth.curves.items()]


def _measure_curve(claim: str, name: str, curve: Curve, shortest: int, scale: Scale) -> CurveResult:
    longest = 4 * shortest if scale.tiny else curve.longest
    patience = 0.5 if scale.quick or scale.tiny else 15.0
    points: list[Point] = []
    build_call(curve.build(shortest), backward=curve.backward)()  # may import or compile
    length = shortest
    while length <= longest and not _takes_too_long(points, patience):
        seconds = _measure_seconds(build_call(curve.build(length), backward=curve.backward), scale)
        weight = measure_memory(MemoryRequest(claim, contender=name, length=length))
        points.append(Point(length, seconds, weight.megabytes))
        length *= 2
    lengths = [point.length for point in points]
    return CurveResult(
        name,
        curve.backward,
        points,
        estimate_exponent(lengths, [point.seconds for point in points]),
        # Less than a megabyte is pages of the interpreter, not of the mechanism.
        estimate_exponent(lengths, [max(1.0, point.megabytes) for point in points]),
    )


def _takes_too_long(points: Sequence[Point], patience: float) -> bool:
    """Return whether a call at the next length, which takes up to four times the last one, takes more than so long."""
    return len(points) > 1 and 4 * points[-1].seconds > patience


def _measure_seconds(run: Callable[[], object], scale: Scale) -> float:
    start = time.perf_counter()
    run()
    once = time.perf_counter() - start
    if once > SLOW:
        return once
    budget = Budget(seconds=0.2 if scale.quick or scale.tiny else 2.0, least=3, most=50, sample=0.01)
    return summarize(interleave({"run": run}, budget)["run"]).median


def estimate_exponent(lengths: Sequence[int], values: Sequence[float]) -> float:
    """Return the slope of log value against log length over the longest lengths.

    >>> estimate_exponent([256, 512, 1024], [1.0, 4.0, 16.0])
    2.0
    """
    pairs = [(log2(length), log2(value)) for length, value in zip(lengths, values, strict=True)][-LAST:]
    if len(pairs) < 2:
        return float("nan")
    return statistics.linear_regression(*zip(*pairs, strict=True)).slope
