"""Draw the cost of layers against the length: time, operations, longest path, sequential steps, parallelism."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from regard.inspect.draw.fonts import choose_fonts
from regard.inspect.draw.sheet import GAP, SMALL, Sheet, format_number
from regard.inspect.draw.words import Language, localize

STYLES = {
    "convolution": ("#888888", "o"),
    "recurrence": ("#0072b2", "s"),
    "self-attention": ("#d55e00", "^"),
    "dilated convolution": ("#222222", "x"),
    "window": ("#009e73", "v"),
    "linear attention": ("#cc79a7", "D"),
}
Curves = Mapping[str, Mapping[str, Sequence[float]]]  # layer → quantity → its value at each length
COLUMNS = 2  # plots in a row
WIDE, HIGH = 2.3, 1.7  # inches of a plot
APART = 0.36  # inches between two numbers of an axis, at least


def draw_complexity(
    lengths: Sequence[int], measured: Curves, expected: Curves, title: str = "", *, language: Language = "en"
) -> Figure:
    """Draw a plot for each quantity: marks for measured values, a line for the formula of each kind of layer.

    Both axes are logarithmic, so a power is a slope.
    """
    quantities = list(next(iter(measured.values())))
    sheet = Sheet(choose_fonts([title, *measured, *quantities], language))
    top = 0.0
    for first in range(0, len(quantities), COLUMNS):
        for place, quantity in enumerate(quantities[first : first + COLUMNS]):
            panel = sheet.add_panel(place * (WIDE + 0.7), top, WIDE, HIGH)
            draw_quantity(panel, lengths, quantity, measured, expected)
            sheet.name_axes(panel, localize("length", language), "", localize(quantity, language))
        top = sheet.measure().y0 - 3 * GAP
    marks = [
        Line2D([], [], color=color, marker=mark, linestyle="", markerfacecolor="none", label=localize(name, language))
        for name, (color, mark) in STYLES.items()
        if name in measured
    ]
    line = Line2D([], [], color="#444444", linewidth=0.8, label=localize("formula", language))
    sheet.add_key([*marks, line], 0.0, sheet.measure().y0 - GAP, columns=4)
    return sheet.finish(title)


def draw_quantity(axes: Axes, lengths: Sequence[int], quantity: str, measured: Curves, expected: Curves) -> None:
    """Draw one quantity of all layers, with few plain numbers on both axes."""
    for name, own in measured.items():
        color, mark = STYLES[name]
        axes.plot(lengths, expected[name][quantity], "-", color=color, linewidth=0.8)
        axes.plot(lengths, own[quantity], mark, color=color, markersize=5, markerfacecolor="none", clip_on=False)
    axes.set(xscale="log", yscale="log")
    axes.minorticks_off()
    numbers = [value for kind in (measured, expected) for own in kind.values() for value in own[quantity] if value > 0]
    low, high = min(numbers, default=1.0), max(numbers, default=1.0)
    if high < 4 * low:  # all but equal: leave room around the line
        low, high = low / 3, high * 3
    ticks = choose_log_ticks(low, high)
    axes.set_ylim(min(low / 1.3, ticks[0]), max(high * 1.3, ticks[-1]))
    axes.set_yticks(ticks, [format_number(tick) for tick in ticks], fontsize=SMALL)
    shown = space_ticks(lengths)
    axes.set_xticks(shown, list(map(str, shown)), fontsize=SMALL)


def choose_log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return numbers for a logarithmic axis: powers of ten, some of them if there are many; with 2 and 5 if few.

    >>> choose_log_ticks(20.0, 70.0), choose_log_ticks(1.0, 1000.0), choose_log_ticks(1e-4, 1e8)
    ([20.0, 50.0], [1.0, 10.0, 100.0, 1000.0], [0.0001, 0.01, 1.0, 100.0, 10000.0, 1000000.0, 100000000.0])
    """
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    fine = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in (1, 2, 5)]
    inside = [tick for tick in fine if low <= tick <= high]
    if len(inside) <= most:
        return inside or [float(f"1e{first}")]
    step = -(-(last - first) // most)
    powers = [float(f"1e{power}") for power in range(first, last + 1, max(1, step))]
    return [tick for tick in powers if low <= tick <= high] or inside[:: len(inside) // 2]


def space_ticks(lengths: Sequence[int]) -> list[int]:
    """Return the lengths whose numbers fit beside each other, the last of them first of all.

    >>> space_ticks([16, 64, 256, 1024]), space_ticks([16, 17, 64])
    ([16, 64, 256, 1024], [17, 64])
    """
    span = max(np.log(lengths[-1] / lengths[0]), 1e-9)
    shown = [lengths[-1]]
    wide = max(APART, 0.09 * len(str(lengths[-1])))
    for length in reversed(lengths[:-1]):
        if WIDE * 0.9 * np.log(shown[0] / length) / span >= wide:
            shown.insert(0, length)
    return shown
