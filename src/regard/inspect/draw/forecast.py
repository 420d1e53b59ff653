"""Draw a series and its forecast, a panel for each of its columns."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from regard.inspect.draw.arrays import Numbers, to_array

KNOWN, FORECAST = "#444444", "#d55e00"
MOST = 8  # panels


def draw_forecast(known: Numbers, forecast: Numbers, names: Sequence[str]) -> Figure:
    """Draw the last rows of a series `(moments, columns)`, and its forecast behind them."""
    before, after = to_array("known", known, axes=2), to_array("forecast", forecast, axes=2)
    count = min(MOST, before.shape[1])
    figure = Figure(figsize=(7.0, 0.6 + 1.9 * count), layout="constrained")
    axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    moments = np.arange(-len(before) + 1, 1)
    for axis, name, old, new in zip(axes, names, before.T, after.T, strict=False):
        axis.plot(moments, old, color=KNOWN, label="known")
        axis.plot(range(len(new) + 1), [old[-1], *new], "o-", color=FORECAST, markersize=3, label="forecast")
        axis.set_ylabel(name)
    axes[0].legend(frameon=False, fontsize="small")
    axes[-1].set_xlabel("steps from the last known row")
    return figure
