"""Draw the curves of trainings: loss, metrics and learning rate against the steps, several runs over each other."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from regard.errors import wrong
from regard.inspect.draw.color_scale import LINES
from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.labels import shorten_together
from regard.inspect.draw.sheet import GAP, SMALL, Sheet, format_number
from regard.inspect.draw.words import Language, localize

COLUMNS = 2  # plots in a row
WIDE, HIGH = 2.6, 1.6  # inches of a plot
MOST = 2000  # points of a curve: more cannot be told apart
LONGEST = 40  # cells of a run's name
EARLY = 0.1  # of a curve: what is far off at the beginning may leave the plot


class Curve(NamedTuple):
    """One quantity of one run, as measured in training or on held-out data, at each of some steps."""

    steps: Sequence[int]
    values: Sequence[float]


RunCurves = Mapping[str, Mapping[str, Curve]]  # quantity → "training" or "validation" → its curve


def draw_curves(runs: Mapping[str, RunCurves], title: str = "", *, language: Language = "en") -> Figure:
    """Draw a plot for each quantity, a color for each run: lines for training, marks on them for held-out data."""
    quantities = list_quantities(runs)
    sheet = Sheet(choose_fonts([title, *runs, *quantities], language))
    colors = {run: LINES[place % len(LINES)] for place, run in enumerate(runs)}
    top = 0.0
    for first in range(0, len(quantities), COLUMNS):
        for place, quantity in enumerate(quantities[first : first + COLUMNS]):
            panel = sheet.add_panel(place * (WIDE + 0.75), top, WIDE, HIGH)
            draw_quantity(panel, {run: curves.get(quantity, {}) for run, curves in runs.items()}, colors)
            sheet.name_axes(panel, localize("step", language), "", localize(quantity, language))
        top = sheet.measure().y0 - 3 * GAP
    parts = {part for curves in runs.values() for lines in curves.values() for part in lines}
    names = shorten_together(list(colors), LONGEST)
    key = [Line2D([], [], color=color, label=name) for name, color in zip(names, colors.values(), strict=True)]
    key += [
        make_mark(part, "#444444", localize(part, language)) for part in ("training", "validation") if part in parts
    ]
    sheet.add_key(key, 0.0, sheet.measure().y0 - GAP, columns=min(3, len(key)))
    return sheet.finish(title)


def list_quantities(runs: Mapping[str, RunCurves]) -> list[str]:
    """Return the names of what the runs have measured; raise if there is nothing."""
    quantities = list(dict.fromkeys(name for curves in runs.values() for name in curves))
    if not quantities:
        raise wrong("runs", "none that has trained a step", "at least one", "train it first, or name another run")
    return quantities


def make_mark(part: str, color: str, label: str = "") -> Line2D:
    """Return how the curve of a part is drawn: a thin line, or a thicker one with marks."""
    if part == "training":
        return Line2D([], [], color=color, linewidth=0.8, alpha=0.7, label=label)
    return Line2D([], [], color=color, linewidth=1.4, marker="o", markersize=3, label=label)


def draw_quantity(axes: Axes, runs: Mapping[str, Mapping[str, Curve]], colors: Mapping[str, str]) -> None:
    """Draw one quantity of all runs; the first steps do not decide how high the plot is."""
    later: list[float] = []
    for run, lines in runs.items():
        for part, curve in lines.items():
            steps, values = thin_out(curve)
            line = make_mark(part, colors[run])
            if len(steps) == 1:
                line.set_marker("o")  # a line of one point cannot be seen
                line.set_markersize(3)
            line.set_data(steps, values)
            axes.add_line(line)
            finite = values[np.isfinite(values)]
            later += finite[int(EARLY * len(finite)) if len(finite) > 20 else 0 :].tolist()
    axes.autoscale_view()
    axes.relim()
    axes.autoscale(axis="x")
    if later:
        low, high = min(later), max(later)
        room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
        axes.set_ylim(low - room, high + room)
    axes.locator_params(nbins=5)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(format_number)
    axes.yaxis.set_major_formatter(format_number)
    axes.tick_params(labelsize=SMALL)
    axes.grid(color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)


def thin_out(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Return at most so many points of a curve as can be told apart, the last of them always."""
    steps, values = np.asarray(curve.steps, dtype=np.float64), np.asarray(curve.values, dtype=np.float64)
    if len(steps) > MOST:
        kept = np.unique(np.linspace(0, len(steps) - 1, MOST).round().astype(int))
        steps, values = steps[kept], values[kept]
    return steps, values
