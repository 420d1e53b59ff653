"""Options of the figures that commands write."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass
class FigureOptions:
    """Options of a figure."""

    title: str | None = None
    "Above the figure; otherwise run, layer and head."
    language: Literal["en", "zh"] = "en"
    "Of the words that the figure adds: axes, scales, legends."
    scale: float = 2.0
    "Of a PNG: 100 pixels an inch times this; 3 for print."
    background: Literal["white", "transparent"] = "white"
    "Of the paper."

    def check(self, output: Path | None) -> None:
        """Raise unless a figure can be written under this name: before the work, not after it."""
        if output is not None:
            from regard.inspect.draw.output import check_output

            check_output(output)

    def save(self, figure: "Figure", output: Path) -> None:
        """Write a figure in the format that its name ends in."""
        from regard.inspect.draw.output import save_figure

        save_figure(figure, output, scale=self.scale, background=self.background)

    def choose_title(self, *parts: str) -> str:
        """Return the title that was asked for, or one of these parts."""
        from regard.inspect.draw.words import join_title

        return join_title(*parts) if self.title is None else self.title


FigureFlags = Annotated[FigureOptions | None, Parameter(name="*")]
