"""What layers cost against the length: time, operations, longest path and steps in a row."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

LINES = {"convolution": ("#888888", "o:"), "recurrence": ("#0072b2", "s--"), "self-attention": ("#d55e00", "^-")}


def complexity(lengths: Sequence[int], curves: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """A plot for each quantity, a line for each kind of layer; both axes are logarithmic, so a power is a slope."""
    figure = Figure(figsize=(3.4 * len(curves), 3.3), layout="constrained")
    for axis, (quantity, lines) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves.items(), strict=True):
        for name, values in lines.items():
            color, style = LINES.get(name, ("black", "-"))
            axis.plot(lengths, values, style, color=color, label=name, markersize=4)
        axis.set(xscale="log", yscale="log", xlabel="length", title=quantity)
        axis.legend(frameon=False, fontsize="x-small")
    return figure
