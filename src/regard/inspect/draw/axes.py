"""What the pictures of attention share: tokens beside rows and columns, and the weights between them."""

from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from regard.errors import wrong
from regard.inspect.draw.colors import Kind, make_color_map
from regard.inspect.draw.fonts import FontSet

MOST = 1000  # cells of an axis; more than a screen has are drawn by the largest of several
TICKS = 220  # labels of an axis
FEW = 24  # of those that are numbers: the others can be counted
Table = Float[np.ndarray, "row column"]


class Axis(NamedTuple):
    """The labels along one side; None where positions are numbered."""

    tokens: Sequence[str] | None
    size: int

    @classmethod
    def from_tokens(cls, name: str, tokens: Sequence[str] | None, size: int) -> "Axis":
        """Checked: one label for each position."""
        if tokens is not None and len(tokens) != size:
            raise wrong(name, f"{len(tokens)} labels", f"{size}, one for each", "give a label to every position")
        return cls(tokens, size)

    @property
    def texts(self) -> list[str]:
        """What is to be written."""
        return list(map(str, range(1, self.size + 1))) if self.tokens is None else list(self.tokens)

    @property
    def has_only_numbers(self) -> bool:
        """Whether it is long and has only numbers, of positions or of ranges of them."""
        return self.size > TICKS and all(text[:1].isdigit() for text in self.texts)

    def choose_ticks(self, room: int = TICKS) -> range:
        """Which positions are written: all, or every so many."""
        room = min(room, FEW) if self.has_only_numbers else room
        return range(0, self.size, max(1, -(-self.size // room)))


def check_table(weights: np.ndarray) -> Table:
    """A table of finite numbers; what is not a number was never looked at."""
    table = np.asarray(weights, dtype=np.float64)
    if table.ndim != 2 or 0 in table.shape:
        shape = " × ".join(map(str, table.shape))
        raise wrong("weights", shape or "one number", "queries × keys, none of them 0", "take one head of one item")
    return np.nan_to_num(table, nan=0.0, posinf=0.0, neginf=0.0)


def pool_largest(table: Table, most: int = MOST) -> tuple[Float[np.ndarray, "height width"], tuple[int, int]]:
    """The table in at most so many cells each way, each the largest of those in it, and how many those are.

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
    """By size, with its sign."""
    where = np.abs(part).argmax(axis)
    found: Float[np.ndarray, " cell"] = np.take_along_axis(part, np.expand_dims(where, axis), axis).squeeze(axis)
    return found


def paint(axes: Axes, table: Table, kind: Kind = "weights", largest: float = 1.0) -> AxesImage:
    """Cells in their places: position n is at n, whatever was pooled."""
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
    """Tokens beside the rows and above the columns; gives the legend of those that had to be numbered."""
    axes.xaxis.tick_top()
    across = letters.make_ticks(columns.texts)
    down = letters.make_ticks(rows.texts, 1 + len(across.legend))
    axes.set_xticks(columns.choose_ticks(), labels=[across.ticks[place] for place in columns.choose_ticks()])
    axes.set_yticks(rows.choose_ticks(), labels=[down.ticks[place] for place in rows.choose_ticks()])
    for text in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        text.set(fontfamily=list(letters.families), parse_math=False)  # a dollar sign is no formula
    upright = all(len(tick) <= 2 for tick in across.ticks)
    for text in axes.get_xticklabels():
        text.set_rotation(0 if upright else 90)
    axes.tick_params(length=0)
    return across.legend + down.legend


def draw_grid_lines(axes: Axes, rows: int, columns: int) -> None:
    """Thin lines between cells, where there are few enough to see them."""
    axes.tick_params(which="minor", length=0)
    if max(rows, columns) > 100:
        return
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#dddddd", linewidth=0.5)


def add_title(figure: Figure, title: str, letters: FontSet, notes: Sequence[str]) -> None:
    """A title above, and below what a reader needs to know."""
    if title:
        figure.suptitle(letters.spell_missing(title), parse_math=False, fontfamily=list(letters.families))
    if notes:
        lines = [line for note in notes for line in wrap(note, max(40, int(12 * figure.get_figwidth())))]
        text = figure.supxlabel("\n".join(lines), fontsize="x-small", color="#666666")
        text.set(fontfamily=list(letters.families), parse_math=False)
