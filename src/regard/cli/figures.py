"""Options of the figures that commands write."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from regard.cli.output import print_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class FigureOptions:
    """Options of a figure."""

    output: Path | None = None
    "A picture (.png, .svg, .pdf)."
    title: str | None = None
    "Above the figure; otherwise run, layer and head."
    language: Literal["en", "zh"] = "en"
    "Of the words that the figure adds: axes, scales, legends."
    scale: float = 2.0
    "Of a PNG: 100 pixels an inch times this; 3 for print."
    background: Literal["white", "transparent"] = "white"
    "Of the paper."

    def check(self) -> None:
        """Raise unless a figure can be written under the name of the output: before the work, not after it."""
        if self.output is not None:
            from regard.inspect.draw.output import check_output

            check_output(self.output)

    def save(self, figure: "Figure", *, announced: bool = True) -> None:
        """Write a figure in the format that the name of the output ends in, and say so; nothing if there is no name.

        Beside JSON on standard output it is not announced.
        """
        from regard.inspect.draw.output import save_figure

        if self.output is not None:
            save_figure(figure, self.output, scale=self.scale, background=self.background)
            if announced:
                print_path("picture", self.output)

    def choose_title(self, *parts: str) -> str:
        """Return the title that was asked for, or one of these parts."""
        from regard.inspect.draw.words import join_title

        return join_title(*parts) if self.title is None else self.title


@dataclass
class ShowOptions(FigureOptions):
    """Options of a map of attention: in the terminal, as a figure or as a page."""

    output: Path | None = None
    "A picture (.png, .svg, .pdf) or a page (.html) instead of the map in the terminal."
    html: Path | None = None
    "A page to look through: everything that there is to see, with exact weights."

    def __post_init__(self) -> None:
        if self.output is not None and self.output.suffix.lower() in (".html", ".htm"):
            self.output, self.html = None, self.output


FigureFlags = Annotated[FigureOptions | None, Parameter(name="*")]
ShowFlags = Annotated[ShowOptions | None, Parameter(name="*")]
