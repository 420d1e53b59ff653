"""Draw the parts that figures of attention share: weights, tokens beside them, titles and notes."""

from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from regard.errors import wrong
from regard.inspect.draw.arrays import Numbers, to_array
from regard.inspect.draw.colors import Kind, make_color_map
from regard.inspect.draw.fonts import FontSet

MOST = 1000  # cells of an axis: of more, the largest of several is drawn
TICKS = 220  # labels of an axis
FEW = 24  # labels of an axis that has only numbers
NO_FONT = "numbers stand for what no font here can write: install fonts-noto-cjk, or the extra zh"
Table = Float[np.ndarray, "row column"]


class Axis(NamedTuple):
    """The labels along one side; None if positions are numbered."""

    tokens: Sequence[str] | None
    size: int

    @classmethod
    def from_tokens(cls, name: str, tokens: Sequence[str] | None, size: int) -> "Axis":
        """Return an axis; raise unless there is one label for each position."""
        if tokens is not None and len(tokens) != size:
            raise wrong(name, f"{len(tokens)} labels", f"{size}, one for each", "give a label to every position")
        return cls(tokens, size)

    @property
    def texts(self) -> list[str]:
        """The labels as they are written."""
        return list(map(str, range(1, self.size + 1))) if self.tokens is None else list(self.tokens)

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


def paint(axes: Axes, table: Table, kind: Kind = "weights", largest: float = 1.0) -> AxesImage:
    """Draw the cells of a table; position n is at n even if cells are pooled."""
    small, _ = pool_largest(table)
    rows, columns = table.shape
    bounds = (-0.5, columns - 0.5, rows - 0.5, -0.5)
    least = -largest if kind == "difference" else 0.0
    return axes.imshow(
        small,
        cmap=make_color_map(kind),
        vmin=least,
        vmax=largest,
        aspect="auto",
        interpolation="nearest",
        extent=bounds,
    )


def label(axes: Axes, rows: Axis, columns: Axis, letters: FontSet) -> list[str]:
    """Write tokens beside the rows and above the columns; return the legend of those that had to be numbered."""
    axes.xaxis.tick_top()
    across = letters.make_ticks(columns.texts)
    down = letters.make_ticks(rows.texts, 1 + len(across.legend))
    upright = all(len(tick) <= 2 for tick in across.ticks)
    shown = columns.choose_ticks()
    axes.set_xticks(shown, [across.ticks[tick] for tick in shown], rotation=0 if upright else 90, **letters.style)
    shown = rows.choose_ticks()
    axes.set_yticks(shown, [down.ticks[tick] for tick in shown], **letters.style)
    axes.tick_params(length=0)
    return across.legend + down.legend


def draw_grid_lines(axes: Axes, rows: int, columns: int) -> None:
    """Draw thin lines between cells, if there are few enough to see them."""
    axes.tick_params(which="minor", length=0)
    if max(rows, columns) > 100:
        return
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#dddddd", linewidth=0.5)


def add_title(
    figure: Figure, title: str, letters: FontSet, legend: Sequence[str] = (), notes: Sequence[str] = ()
) -> None:
    """Write a title above, and below it the legend of tokens that no font can write, and notes."""
    if title:
        figure.suptitle(letters.spell_missing(title), **letters.style)
    below = [", ".join(legend), NO_FONT, *notes] if legend else notes
    if below:
        lines = [line for note in below for line in wrap(note, max(40, int(12 * figure.get_figwidth())))]
        figure.supxlabel("\n".join(lines), fontsize="x-small", color="#666666", **letters.style)
