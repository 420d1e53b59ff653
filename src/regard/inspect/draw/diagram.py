"""Draw boxes and the arrows between them: how the parts of a model are joined. `structure.py` has what is drawn."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from regard.inspect.draw.fonts import FontSet, choose_fonts
from regard.inspect.draw.sheet import GRAY, INK, SMALL, TEXT, Sheet
from regard.inspect.draw.words import Language, check_language

Point = tuple[int | float, int | float]
Kind = Literal["input", "layer", "attention", "norm", "state", "output", "text"]
Way = Literal["straight", "up first", "side first", "around"]
COLORS: dict[Kind, str] = {
    "input": "#eeeeee",
    "layer": "#d6e6f5",
    "attention": "#fddcb8",
    "norm": "#eeeec4",
    "state": "#e4d8ef",
    "output": "#d5edd3",
}
ROUND = 0.05  # inches: the corners of boxes
MARGIN = 0.06  # inches between what is drawn and the edge of the panel


class Words(NamedTuple):
    """A text in both languages. One between dollar signs is a formula, and needs no Chinese."""

    english: str
    chinese: str = ""

    def choose(self, language: Language) -> str:
        """Return the text of a language."""
        return self.chinese if language == "zh" and self.chinese else self.english


class Box(NamedTuple):
    """A part: what it does, where its middle is, in inches, and what it is called in regard."""

    words: Words
    at: Point
    kind: Kind = "layer"
    name: str = ""
    size: Point = (1.5, 0.42)


class Arrow(NamedTuple):
    """What goes from one box to another: straight, with a corner, around the first by `bend` inches, or `by` points."""

    start: str
    end: str
    way: Way = "straight"
    bend: float = 0.0
    by: tuple[Point, ...] = ()


class Frame(NamedTuple):
    """A part that consists of boxes, from its lower left corner to its upper right one, with its name at the top."""

    words: Words
    low: Point
    high: Point


class Diagram(NamedTuple):
    """Everything that is drawn."""

    boxes: Mapping[str, Box]
    arrows: Sequence[Arrow]
    frames: Sequence[Frame] = ()


def draw_diagram(diagram: Diagram, title: str = "", *, language: Language = "en") -> Figure:
    """Draw a diagram at the size that it says, with the words of a language."""
    check_language(language)
    words = [*(box.words for box in diagram.boxes.values()), *(frame.words for frame in diagram.frames)]
    letters = choose_fonts([title, *(each.choose(language) for each in words)], language)
    sheet = Sheet(letters)
    edges = [_find_corners(box) for box in diagram.boxes.values()]
    edges += [(*frame.low, *frame.high) for frame in diagram.frames]
    edges += [(*point, *point) for arrow in diagram.arrows for point in arrow.by]
    left, bottom = (min(edge[side] for edge in edges) - MARGIN for side in (0, 1))
    right, top = (max(edge[side] for edge in edges) + MARGIN for side in (2, 3))
    panel = sheet.add_panel(0.0, 0.0, right - left, top - bottom)
    panel.set(xlim=(left, right), ylim=(bottom, top))
    panel.set_axis_off()
    for frame in diagram.frames:
        _draw_frame(panel, frame, letters, language)
    for arrow in diagram.arrows:
        _draw_arrow(panel, trace_arrow(arrow, diagram.boxes))
    for box in diagram.boxes.values():
        _draw_box(panel, box, letters, language)
    return sheet.finish(title)


def trace_arrow(arrow: Arrow, boxes: Mapping[str, Box]) -> list[Point]:
    """Return the points of an arrow, from the edge of its first box to the edge of its second."""
    start, end = boxes[arrow.start], boxes[arrow.end]
    if arrow.way == "around":
        begun = (start.at[0], start.at[1] - start.size[1] / 2 - 0.09)
        aside = start.at[0] + arrow.bend
        corners = [begun, (aside, begun[1]), (aside, end.at[1])]
        return [*corners, find_edge(end, corners[-1])]
    if arrow.by:
        return [find_edge(start, arrow.by[0]), *arrow.by, find_edge(end, arrow.by[-1])]
    if arrow.way == "straight":
        return [find_edge(start, end.at), find_edge(end, start.at)]
    corner = (start.at[0], end.at[1]) if arrow.way == "up first" else (end.at[0], start.at[1])
    return [find_edge(start, corner), corner, find_edge(end, corner)]


def join_boxes(*pairs: str) -> list[Arrow]:
    """Return straight arrows between boxes: two names with a blank between them are a pair.

    >>> join_boxes("query score")[0].end
    'score'
    """
    return [Arrow(start, end) for start, _, end in (pair.partition(" ") for pair in pairs)]


def find_edge(box: Box, target: Point) -> Point:
    """Return where the line from the middle of a box to a point leaves the box.

    >>> find_edge(Box(Words("sum"), (0.0, 0.0), size=(2.0, 1.0)), (0.0, 3.0))
    (0.0, 0.5)
    """
    across, up = target[0] - box.at[0], target[1] - box.at[1]
    share = max(abs(across) / (box.size[0] / 2), abs(up) / (box.size[1] / 2), 1e-9)
    return box.at[0] + across / share, box.at[1] + up / share


def _find_corners(box: Box) -> tuple[int | float, ...]:
    (x, y), (width, height) = box.at, box.size
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _draw_box(axes: Axes, box: Box, letters: FontSet, language: Language) -> None:
    left, bottom, _, _ = _find_corners(box)
    if box.kind != "text":
        style = f"round,pad=0,rounding_size={ROUND}"
        shape = FancyBboxPatch((left, bottom), *box.size, boxstyle=style, fc=COLORS[box.kind], ec=INK, lw=0.7)
        axes.add_patch(shape)
    lift = 0.08 if box.name else 0.0
    _write(axes, box.words.choose(language), (box.at[0], box.at[1] + lift), letters, TEXT, INK)
    if box.name:
        _write(axes, box.name, (box.at[0], bottom + 0.11), letters, SMALL, GRAY)


def _draw_frame(axes: Axes, frame: Frame, letters: FontSet, language: Language) -> None:
    width, height = frame.high[0] - frame.low[0], frame.high[1] - frame.low[1]
    style = f"round,pad=0,rounding_size={2 * ROUND}"
    axes.add_patch(FancyBboxPatch(frame.low, width, height, boxstyle=style, fc="#fafafa", ec="#999999", lw=0.8))
    corner = (frame.low[0] + 0.2, frame.high[1] - 0.14)
    _write(axes, frame.words.choose(language), corner, letters, TEXT, GRAY, side="left")


def _draw_arrow(axes: Axes, points: Sequence[Point]) -> None:
    path = Path(list(points))
    axes.add_patch(
        FancyArrowPatch(path=path, arrowstyle="-|>", mutation_scale=7, color=INK, lw=0.8, joinstyle="round", fill=False)
    )


def _write(
    axes: Axes, text: str, at: Point, letters: FontSet, points: float, color: str, *, side: str = "center"
) -> None:
    style = letters.style | {"parse_math": text.startswith("$")}
    axes.text(*at, text, ha=side, va="center", fontsize=points, color=color, linespacing=1.1, **style)
