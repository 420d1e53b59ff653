"""Lay figures out in inches: panels have the size that is asked for, and the paper grows with what is beside them."""

from collections.abc import Sequence
from typing import Any
from unicodedata import east_asian_width

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from regard.inspect.draw.color_scale import ColorScale
from regard.inspect.draw.fonts import FontSet
from regard.inspect.draw.labels import measure_cells
from regard.inspect.draw.output import DOTS, MARGIN, InlineFigure

TITLE, TEXT, SMALL = 10.5, 9.0, 7.5  # points
GAP = 0.1  # inches between parts
BAR = 0.09  # inches: the breadth of a color scale
NARROWEST = 3.2  # inches: titles are broken into lines of this width, or of the panels' if that is more
INK, GRAY = "#222222", "#666666"


class Sheet:
    """Paper without borders: panels are placed in inches, y upward, and `finish` cuts the paper around them."""

    def __init__(self, letters: FontSet) -> None:
        self.letters = letters
        self.figure = InlineFigure(figsize=(1.0, 1.0), dpi=DOTS)  # so that a fraction of it is an inch

    def add_panel(self, left: float, top: float, width: float, height: float) -> Axes:
        """Return new axes of this size; labels beside them take further space."""
        axes = self.figure.add_axes((left, top - height, width, height))
        axes.tick_params(labelsize=TEXT, colors=INK)
        return axes

    def name_axes(self, axes: Axes, across: str = "", down: str = "", title: str = "") -> None:
        """Write the names of both axes, and a title above."""
        style = self.letters.style
        if across:
            axes.set_xlabel(self.letters.spell_missing(across), fontsize=TEXT, **style)
        if down:
            axes.set_ylabel(self.letters.spell_missing(down), fontsize=TEXT, **style)
        if title:
            axes.set_title(self.letters.spell_missing(title), fontsize=TEXT, **style)

    def write(self, text: str, x: float, y: float, **style: Any) -> None:
        """Write text beside panels, in small letters."""
        self.figure.text(x, y, self.letters.spell_missing(text), fontsize=SMALL, **self.letters.style, **style)

    def measure(self, *panels: Axes) -> Bbox:
        """Return what panels cover with all that is written beside them, in inches; by default all that is drawn."""
        boxes = [panel.get_tightbbox() for panel in panels or self.figure.axes]
        boxes += [] if panels else [text.get_window_extent() for text in self.figure.texts]
        return scale_box(Bbox.union([box for box in boxes if box is not None]), 1 / DOTS)

    def move(self, panel: Axes, right: float = 0.0, up: float = 0.0) -> None:
        """Move a panel by so many inches."""
        place = panel.get_position(original=True)
        panel.set_position((place.x0 + right, place.y0 + up, place.width, place.height))

    def move_right(self, panel: Axes, gap: float = 2 * GAP) -> None:
        """Put a panel, with all that is written beside it, at the right of all others."""
        others = self.measure(*(other for other in self.figure.axes if other is not panel))
        self.move(panel, right=others.x1 + gap - self.measure(panel).x0)

    def add_color_scale(self, picture: ScalarMappable, scale: ColorScale, name: str, *panels: Axes) -> None:
        """Draw the colors and their numbers at the right of panels, or below them if they are low."""
        inner, outer = Bbox.union([panel.get_position(original=True) for panel in panels]), self.measure(*panels)
        upright = inner.height >= 1.0
        if upright:
            bar = self.add_panel(outer.x1 + GAP, inner.y1, BAR, min(inner.height, 2.4))
        else:
            bar = self.add_panel(inner.x0, outer.y0 - GAP, 1.6, BAR)
        way = "vertical" if upright else "horizontal"
        self.figure.colorbar(picture, cax=bar, orientation=way, ticks=scale.choose_ticks(), format=format_number)
        self.name_axes(bar, *(("", name) if upright else (name, "")))
        bar.tick_params(labelsize=SMALL, length=2, colors=INK)
        bar.minorticks_off()
        bar.set_label("<colorbar>")  # as matplotlib calls its own

    def add_key(self, handles: Sequence[Line2D], left: float, top: float, columns: int = 1) -> None:
        """Write what lines and marks stand for in a place of its own, so that it covers nothing."""
        axes = self.add_panel(left, top, 0.01, 0.01)
        axes.set_axis_off()
        font = {"family": list(self.letters.families), "size": SMALL}
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.0, "borderpad": 0.0}
        key = axes.legend(handles=handles, prop=font, ncols=columns, frameon=False, **place)
        for text in key.get_texts():
            text.set(text=self.letters.spell_missing(text.get_text()), parse_math=False)

    def finish(self, title: str = "", notes: Sequence[str] = ()) -> Figure:
        """Write the title above and the notes below, cut the paper around all of it, and return the figure."""
        box = self.measure()
        width, middle = max(box.width, NARROWEST), (box.x0 + box.x1) / 2
        texts = []
        if title:
            lines = wrap_text(self.letters.spell_missing(title), int(width * 72 / (0.62 * TITLE)))
            place: dict[str, Any] = {"x": middle, "y": box.y1 + GAP, "ha": "center", "va": "bottom"}
            texts.append(self.figure.suptitle("\n".join(lines), fontsize=TITLE, **place, **self.letters.style))
        if notes:
            lines = [line for note in notes for line in wrap_text(note, int(width * 72 / (0.62 * SMALL)))]
            place = {"x": middle, "y": box.y0 - GAP, "ha": "center", "va": "top"}
            style = {"fontsize": SMALL, "color": GRAY, **self.letters.style}
            texts.append(self.figure.supxlabel("\n".join(lines), **place, **style))
        crop(self.figure, Bbox.union([box, *(scale_box(text.get_window_extent(), 1 / DOTS) for text in texts)]))
        return self.figure


def crop(figure: Figure, drawn: Bbox) -> None:
    """Make the paper as large as what is drawn on it; it was one inch wide and high, with parts beyond its edges."""
    drawn = drawn.padded(MARGIN)
    places = [(axes, axes.get_position(original=True)) for axes in figure.axes]
    figure.set_size_inches(drawn.width, drawn.height)
    for axes, place in places:
        left, bottom = (place.x0 - drawn.x0) / drawn.width, (place.y0 - drawn.y0) / drawn.height
        axes.set_position((left, bottom, place.width / drawn.width, place.height / drawn.height))
    for text in figure.texts:
        x, y = text.get_position()
        text.set_position(((x - drawn.x0) / drawn.width, (y - drawn.y0) / drawn.height))


def scale_box(box: Bbox, factor: float) -> Bbox:
    """Return a box in other units."""
    return Bbox(box.get_points() * factor)


def format_number(value: int | float, _: object = None) -> str:
    """Return a number of an axis: plain if that is short, with a true minus sign.

    >>> format_number(0.25), format_number(-1.0), format_number(20000), format_number(0.00002)
    ('0.25', '−1', '2e4', '2e−5')
    """
    plain = f"{value:.6g}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3e}"
    digits, _, power = plain.partition("e")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return (f"{digits}e{int(power)}" if power else digits).replace("-", "−")


def wrap_text(text: str, most: int) -> list[str]:
    """Return the lines of a text, each of at most `most` cells; Chinese breaks anywhere, other text at blanks.

    >>> wrap_text("one two three", 8), wrap_text("注意力机制", 6)
    (['one two', 'three'], ['注意力', '机制'])
    """
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in split_pieces(paragraph):
            if line.strip() and measure_cells((line + piece).rstrip()) > most:
                lines.append(line.rstrip())
                line = piece.lstrip()
            else:
                line += piece
        lines.append(line.rstrip())
    return lines


def split_pieces(text: str) -> list[str]:
    """Return the pieces between which a line may break: words with the blank behind them, and wide characters.

    >>> split_pieces("see 注意 now")
    ['see ', '注', '意', ' ', 'now']
    """
    pieces: list[str] = []
    for sign in text:
        if not pieces or pieces[-1][-1] == " " or "W" in map(east_asian_width, (pieces[-1][-1], sign)):
            pieces.append(sign)
        else:
            pieces[-1] += sign
    return pieces
