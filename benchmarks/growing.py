"""Measure how a backend grows: time in this process, memory in fresh ones, lengths doubled while it is bearable."""

import statistics
import time
from collections.abc import Callable, Sequence
from math import log2

from benchmarks.claim import Curve, Growth
from benchmarks.measuring import Scale, stepped
from benchmarks.memory import Wanted, weigh
from benchmarks.results import CurveResult, Point
from regard.compute.timing import Budget, interleave, spread

LAST = 4  # points that the slope is fitted to: at short lengths every backend is all overhead
SLOW = 2.0  # seconds after which one call is enough: there is nothing left to warm up


def grow(claim: str, growth: Growth, scale: Scale) -> list[CurveResult]:
    """Every curve."""
    return [_curve(claim, name, curve, growth.shortest, scale) for name, curve in growth.curves.items()]


def _curve(claim: str, name: str, curve: Curve, shortest: int, scale: Scale) -> CurveResult:
    longest = 4 * shortest if scale.tiny else curve.longest
    patience = 0.5 if scale.quick or scale.tiny else 15.0
    points: list[Point] = []
    stepped(curve.build(shortest), backward=curve.backward)()  # may import or compile
    length = shortest
    while length <= longest and not _too_long(points, patience):
        seconds = _seconds(stepped(curve.build(length), backward=curve.backward), scale)
        weight = weigh(Wanted(claim, contender=name, length=length))
        points.append(Point(length, seconds, weight.megabytes))
        length *= 2
    lengths = [point.length for point in points]
    return CurveResult(
        name,
        curve.backward,
        points,
        exponent(lengths, [point.seconds for point in points]),
        # Less than a megabyte is pages of the interpreter, not of the mechanism.
        exponent(lengths, [max(1.0, point.megabytes) for point in points]),
    )


def _too_long(points: Sequence[Point], patience: float) -> bool:
    """Whether a call at the next length, which takes up to four times the last one, takes more than so long."""
    return len(points) > 1 and 4 * points[-1].seconds > patience


def _seconds(run: Callable[[], object], scale: Scale) -> float:
    start = time.perf_counter()
    run()
    once = time.perf_counter() - start
    if once > SLOW:
        return once
    budget = Budget(seconds=0.2 if scale.quick or scale.tiny else 2.0, least=3, most=50, sample=0.01)
    return spread(interleave({"run": run}, budget)["run"]).median


def exponent(lengths: Sequence[int], values: Sequence[float]) -> float:
    """The slope of log value against log length over the longest lengths.

    >>> exponent([256, 512, 1024], [1.0, 4.0, 16.0])
    2.0
    """
    pairs = [(log2(length), log2(value)) for length, value in zip(lengths, values, strict=True)][-LAST:]
    if len(pairs) < 2:
        return float("nan")
    return statistics.linear_regression(*zip(*pairs, strict=True)).slope
