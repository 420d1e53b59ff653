"""Draw a curve that attention fits, and the weights behind it."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.colors import make_color_map

COLORS = ("#888888", "#0072b2", "#d55e00")  # they differ in grey and for the color-blind too (Okabe & Ito)
LINES = (":", "--", "-")


def draw_regression(
    points: tuple[Numbers, Numbers],
    grid: Numbers,
    truth: Numbers,
    fits: Mapping[str, tuple[Numbers, Numbers]],
    across: str = "x",
) -> Figure:
    """Draw truth, points and every fit on the left; then the weights of each fit, new points down, known points across.

    `across` names the horizontal axis.
    """
    points = (to_array("points", points[0]), to_array("points", points[1]))
    grid, truth = to_array("grid", grid), to_array("truth", truth)
    figure = Figure(figsize=(4.2 + 2.6 * len(fits), 3.6), layout="constrained")
    axes = figure.subplots(1, 1 + len(fits), width_ratios=[1.7] + [1.0] * len(fits))
    curve = axes[0]
    curve.plot(grid, truth, color="black", linewidth=1, label="truth")
    curve.plot(*points, "o", color="black", alpha=0.35, markersize=4, label="training points")
    for (name, (values, _)), color, line in zip(fits.items(), COLORS, LINES, strict=False):
        curve.plot(grid, to_array("fits", values), line, color=color, linewidth=2, label=name)
    curve.set(xlabel=across, ylabel="y")
    curve.legend(frameon=False, fontsize="small")
    order = np.argsort(points[0])
    for axis, (name, (_, weights)) in zip(axes[1:], fits.items(), strict=True):
        picture = axis.imshow(
            to_array("fits", weights, axes=2)[:, order], cmap=make_color_map(), aspect="auto", interpolation="nearest"
        )
        axis.set(title=name, xlabel="training points, sorted", ylabel="new points")
        figure.colorbar(picture, ax=axis, shrink=0.8)
    return figure
