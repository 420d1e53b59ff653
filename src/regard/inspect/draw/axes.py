"""Draw the parts that figures of attention share: weights, and tokens beside them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.image import AxesImage

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.fonts import FontSet
from regard.inspect.draw.labels import LONGEST, is_wide, measure_cells
from regard.inspect.draw.sheet import GAP, TEXT

MOST = 1000  # cells of an axis: of more, the largest of several is drawn
TICKS = 220  # labels of an axis
FEW = 24  # labels of an axis that has only numbers
LONGEST_ROW = 48  # cells of a label beside a row, which has more room than one above a column
Table = Float[np.ndarray, "row column"]


class Axis(NamedTuple):
    """The labels along one side, None if positions are numbered; and the name of the axis."""

    tokens: Sequence[str] | None
    size: int
    name: str = ""

    @classmethod
    def from_tokens(cls, what: str, tokens: Sequence[str] | None, size: int, name: str = "") -> "Axis":
        """Return an axis; raise unless there is one label for each position. An error calls the labels `what`."""
        if tokens is not None and len(tokens) != size:
            raise wrong(what, f"{len(tokens)} labels", f"{size}, one for each", "give a label to every position")
        return cls(tokens, size, name)

    @property
    def texts(self) -> list[str]:
        """The labels as they are written."""
        return list(map(str, range(self.size))) if self.tokens is None else list(self.tokens)

    @property
    def has_only_numbers(self) -> bool:
        """Whether the axis is long and has only numbers, of positions or of ranges of them."""
        return self.size > TICKS and all(text[:1].isdigit() for text in self.texts)

    def choose_ticks(self, room: int = TICKS) -> range:
        """Return the positions whose labels are written: all, or one of several."""
        room = min(room, FEW) if self.has_only_numbers else room
        return range(0, self.size, max(1, -(-self.size // room)))


def check_table(weights: Numbers) -> Table:
    """Return a table of finite numbers, with 0 for NaN and infinities; raise unless it has two axes."""
    table = to_array("weights", weights, axes=2).astype(np.float64)
    if table.ndim != 2 or 0 in table.shape:
        shape = " × ".join(map(str, table.shape))
        fix = "take one head of one item, such as weights[0, 2]"
        raise wrong("weights", shape or "one number", "queries × keys, none of them 0", fix)
    return np.nan_to_num(table, nan=0.0, posinf=0.0, neginf=0.0)


def pool_largest(table: Table, most: int = MOST) -> tuple[Float[np.ndarray, "height width"], tuple[int, int]]:
    """Return the table in at most `most` cells each way, each the largest of several, and how many these are.

    >>> pool_largest(np.array([[0.1, 0.0, 0.4]]), 2)
    (array([[0.1, 0.4]]), (1, 2))
    """
    down, across = (-(-size // most) for size in table.shape)
    for axis, step in enumerate((down, across)):
        if step > 1:
            parts = np.array_split(table, list(range(step, table.shape[axis], step)), axis)
            table = np.stack([take_largest(part, axis) for part in parts], axis)
    return table, (down, across)


def take_largest(part: Table, axis: int) -> Float[np.ndarray, " cell"]:
    """Return the numbers that are largest in size along an axis, with their signs."""
    indices = np.expand_dims(np.abs(part).argmax(axis), axis)
    largest: Float[np.ndarray, " cell"] = np.take_along_axis(part, indices, axis).squeeze(axis)
    return largest


def paint(
    axes: Axes, table: Table, scale: ColorScale, extent: tuple[float, float, float, float] | None = None
) -> AxesImage:
    """Draw the cells of a table; position n is at n, unless `extent` says otherwise, even if cells are pooled."""
    small, _ = pool_largest(table)
    rows, columns = table.shape
    low, high = scale.bounds
    return axes.imshow(
        small,
        cmap=scale.color_map,
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="nearest",
        extent=extent or (-0.5, columns - 0.5, rows - 0.5, -0.5),
    )


def label(axes: Axes, rows: Axis, columns: Axis, letters: FontSet, points: float = TEXT) -> list[str]:
    """Write tokens beside the rows and above the columns; return the legend of those that had to be numbered."""
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    numbers: dict[str, int] = {}
    across = letters.make_ticks(columns.texts, LONGEST, numbers)
    down = letters.make_ticks(rows.texts, LONGEST_ROW, numbers)
    label_columns(axes, [across.ticks[tick] for tick in columns.choose_ticks()], columns, letters, points)
    shown = rows.choose_ticks()
    axes.set_yticks(shown, [down.ticks[tick] for tick in shown], fontsize=points, **letters.style)
    axes.tick_params(length=0, pad=72 * GAP / 3)
    for name, write in ((columns.name, axes.set_xlabel), (rows.name, axes.set_ylabel)):
        if name:
            write(letters.spell_missing(name), fontsize=TEXT, labelpad=5, **letters.style)
    return across.legend + down.legend


def label_columns(axes: Axes, texts: Sequence[str], columns: Axis, letters: FontSet, points: float) -> None:
    """Write labels above columns: Latin turned, Chinese from top to bottom, and all as they are if they are short."""
    upright = all(measure_cells(text) <= 2 for text in texts)
    stacked = [not upright and all(map(is_wide, text)) for text in texts]
    written = ["\n".join(text) if stack else text for text, stack in zip(texts, stacked, strict=True)]
    axes.set_xticks(columns.choose_ticks(), written, fontsize=points, linespacing=1.0, **letters.style)
    for text, stack in zip(axes.get_xticklabels(), stacked, strict=True):
        text.set_rotation(0 if upright or stack else 90)


def draw_grid_lines(axes: Axes, rows: int, columns: int) -> None:
    """Draw thin lines between cells, if there are few enough to see them."""
    if max(rows, columns) > 100:
        return
    right, bottom = columns - 0.5, rows - 0.5
    upright = [[(place - 0.5, -0.5), (place - 0.5, bottom)] for place in range(1, columns)]
    level = [[(-0.5, place - 0.5), (right, place - 0.5)] for place in range(1, rows)]
    axes.add_collection(LineCollection([*upright, *level], colors="#dddddd", linewidths=0.5), autolim=False)
