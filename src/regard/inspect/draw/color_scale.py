"""What the colors of a figure mean."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.colors import ListedColormap

from regard.inspect.draw.colors import Kind, make_color_map

LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#888888", "#e69f00")  # for the color-blind, too (Okabe & Ito)


class ColorScale(NamedTuple):
    """What the colors of a figure mean: weights or differences, and the number of the darkest color.

    If `largest` is None, the numbers decide: 1 if one of them is above a half, else the next of 1, 2, 5, 10, 20, …
    thousandths and so on, so that weak weights can be seen, too.
    """

    kind: Kind = "weights"
    largest: float | None = None

    def fit(self, *tables: Float[np.ndarray, "..."]) -> "ColorScale":
        """Return the scale with its largest number, chosen for all of these tables together."""
        if self.largest is not None:
            return self
        top = max((float(np.abs(table).max()) for table in tables if table.size), default=0.0)
        return self._replace(largest=round_up(top))

    @property
    def bounds(self) -> tuple[float, float]:
        """The numbers of the first and the last color."""
        largest = self.largest or 1.0
        return (-largest if self.kind == "difference" else 0.0), largest

    def choose_ticks(self) -> list[float]:
        """Return the numbers to write beside the colors."""
        low, high = self.bounds
        return [low, (low + high) / 2, high]

    @property
    def color_map(self) -> ListedColormap:
        """The colors, for matplotlib."""
        return make_color_map(self.kind)


def round_up(number: float) -> float:
    """Return the smallest of …, 0.1, 0.2, 0.5, 1, 2, 5, … that is at least a number; 1 for nothing.

    >>> [round_up(number) for number in (0.03, 0.21, 0.6, 1.0, 3.0, 0.0)]
    [0.05, 0.5, 1.0, 1.0, 5.0, 1.0]
    """
    if not 0 < number < np.inf:
        return 1.0
    power = int(np.floor(np.log10(number)))
    steps = (float(f"{digit}e{power}") for digit in (1, 2, 5, 10))
    return next(step for step in steps if step >= number * (1 - 1e-6))
