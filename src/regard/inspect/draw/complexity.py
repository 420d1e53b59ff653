"""Draw the cost of layers against the length: time, operations, longest path, sequential steps."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

LINES = {"convolution": ("#888888", "o"), "recurrence": ("#0072b2", "s"), "self-attention": ("#d55e00", "^")}
Curves = Mapping[str, Mapping[str, Sequence[float]]]  # layer → quantity → its value at each length


def draw_complexity(lengths: Sequence[int], measured: Curves, expected: Curves) -> Figure:
    """Draw a plot for each quantity: marks for measured values, a line for the formula of each kind of layer.

    Both axes are logarithmic, so a power is a slope.
    """
    quantities = list(next(iter(measured.values())))
    figure = Figure(figsize=(3.4 * len(quantities), 3.3), layout="constrained")
    for axis, quantity in zip(figure.subplots(1, len(quantities), squeeze=False)[0], quantities, strict=True):
        for name, own in measured.items():
            color, mark = LINES[name]
            axis.plot(lengths, expected[name][quantity], "-", color=color, linewidth=0.8)
            axis.plot(lengths, own[quantity], mark, color=color, label=name, markersize=5)
        axis.set(xscale="log", yscale="log", xlabel="length", title=quantity)
        axis.legend(frameon=False, fontsize="x-small")
    return figure
