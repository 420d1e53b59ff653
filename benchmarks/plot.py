"""The picture of growth: time and memory against the length, logarithmic on both axes."""

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.results import CurveResult, Result

MARKS = "os^vDPX"


def draw(result: Result, folder: Path) -> list[Path]:
    """Save it as PNG and SVG beside the numbers; the same numbers give the same bytes."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for curve, mark in zip(result.curves, MARKS, strict=False):
        lengths = [point.length for point in curve.points]
        left.plot(lengths, [1e3 * point.seconds for point in curve.points], marker=mark, label=_label(curve, time=True))
        right.plot(lengths, [point.megabytes for point in curve.points], marker=mark, label=_label(curve, time=False))
    _finish(left, "milliseconds")
    _finish(right, "megabytes beyond inputs")
    paths = [folder / f"{result.claim}.{kind}" for kind in ("png", "svg")]
    with matplotlib.rc_context({"svg.hashsalt": "regard", "svg.fonttype": "none"}):
        figure.savefig(paths[0], dpi=100)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def _label(curve: CurveResult, *, time: bool) -> str:
    slope = curve.time_exponent if time else curve.memory_exponent
    return f"{curve.backend}{'' if curve.backward else ', forward'}: n^{slope:.2f}"


def _finish(axes: Axes, what: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda length, _: f"{length / 1024:g}k" if length >= 1024 else f"{length:g}")
    axes.set_xlabel("length")
    axes.set_ylabel(what)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, frameon=False)
