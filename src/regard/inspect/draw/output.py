"""Figures that show themselves in a notebook, and files of them: PNG, SVG and PDF."""

from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure

from regard.datasets.output_files import replace_output
from regard.errors import wrong

FORMATS = (".png", ".svg", ".pdf")
DOTS = 100  # an inch, at scale 1
MARGIN = 0.05  # inches around what is drawn
LARGEST_SCALE = 8
SHOWN = 4000  # pixels of the longer side in a notebook, at most
# Text in an SVG stays text. A PDF has TrueType outlines: many journals take no others. Equal figures are equal files.
STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "regard", "pdf.fonttype": 42}
Background = Literal["white", "transparent"]


class InlineFigure(Figure):
    """A figure that a notebook shows as a picture, without pyplot and whatever its backend is."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (round(DOTS * inches) for inches in self.get_size_inches().tolist())
        scale = min(2.0, SHOWN / max(width, height))
        return render_png(self, scale), {"width": width, "height": height}


def render_png(figure: Figure, scale: int | float = 2) -> bytes:
    """Return a figure as the bytes of a PNG."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=scale * DOTS)
    return file.getvalue()


def save_figure(figure: Figure, path: Path | str, *, scale: int | float = 2, background: Background = "white") -> None:
    """Write a figure, without empty margins, in the format that its name ends in.

    A PNG has 100 pixels an inch times `scale`: 2 for a screen, 3 for print. SVG and PDF are vectors; the text in an SVG
    stays text.
    """
    path = Path(path)
    check_output(path)
    if not 0 < scale <= LARGEST_SCALE:
        raise wrong(
            "scale", scale, f"a number above 0 and at most {LARGEST_SCALE}", "write 2 for a screen, 3 for print"
        )
    with mpl.rc_context(STYLE), replace_output(path) as written:
        figure.savefig(
            written,
            format=path.suffix.lower()[1:],
            dpi=scale * DOTS,
            bbox_inches="tight",
            pad_inches=MARGIN,
            transparent=background == "transparent",
            metadata=describe_file(figure, path.suffix.lower()),
        )


def check_output(path: Path) -> None:
    """Raise unless a figure can be written under this name."""
    if path.suffix.lower() not in FORMATS:
        fix = f"write {path.with_suffix('.png')}"
        raise wrong("output", path, f"a name that ends in {', '.join(FORMATS)}", fix)
    if not path.parent.is_dir():
        raise wrong("output", path, "a folder that exists", f"make {path.parent} first")


def describe_file(figure: Figure, suffix: str) -> dict[str, Any]:
    """Return the title for readers of the file, and no date, so that equal figures are equal files."""
    title = {"Title": " ".join(figure.get_suptitle().split())}
    return title | {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[suffix]
