"""Measure how a backend grows: time in this process, memory in fresh ones, lengths doubled until the time is up."""

import statistics
import time
from collections.abc import Sequence
from math import log2

from benchmarks.claim import Curve, Growth
from benchmarks.measuring import Scale, stepped
from benchmarks.memory import Wanted, weigh
from benchmarks.results import CurveResult, Point
from regard.timing import Budget, interleave, spread

LAST = 4  # points that the slope is fitted to: at short lengths every backend is all overhead


def grow(claim: str, growth: Growth, scale: Scale) -> list[CurveResult]:
    """Every curve."""
    return [_curve(claim, name, curve, growth.shortest, scale) for name, curve in growth.curves.items()]


def _curve(claim: str, name: str, curve: Curve, shortest: int, scale: Scale) -> CurveResult:
    seconds = 8.0 if scale.quick or scale.tiny else 75.0
    longest = 4 * shortest if scale.tiny else curve.longest
    points: list[Point] = []
    end, length = time.monotonic() + seconds, shortest
    while length <= longest and not _too_long(points, end - time.monotonic()):
        run = stepped(curve.build(length), backward=curve.backward)
        found = interleave({name: run}, Budget(seconds=seconds / 50, least=2, most=20, sample=0.005))[name]
        del run
        weight = weigh(Wanted(claim, contender=name, length=length))
        points.append(Point(length, spread(found).median, weight.megabytes))
        length *= 2
    lengths = [point.length for point in points]
    return CurveResult(
        name,
        curve.backward,
        points,
        exponent(lengths, [point.seconds for point in points]),
        exponent(lengths, [point.megabytes for point in points]),
    )


def _too_long(points: Sequence[Point], left: float) -> bool:
    """Whether the next length may not fit: it takes up to four times the last one, five times over with memory."""
    return len(points) > 1 and left < 20 * points[-1].seconds


def exponent(lengths: Sequence[int], values: Sequence[float]) -> float:
    """The slope of log value against log length over the longest lengths.

    >>> exponent([256, 512, 1024], [1.0, 4.0, 16.0])
    2.0
    """
    pairs = [(log2(length), log2(max(value, 1e-9))) for length, value in zip(lengths, values, strict=True)][-LAST:]
    if len(pairs) < 2:
        return float("nan")
    return statistics.linear_regression(*zip(*pairs, strict=True)).slope
