"""Where a translator looked: one row for each token it said, one column for each it read."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from regard.draw.fonts import Lettering, lettering
from regard.errors import wrong

CELL = 0.27  # inches
LARGEST = 40.0  # inches: a picture of a page of text is still a picture
FORMATS = (".png", ".svg", ".pdf")
BLANK = "␣"


def alignment(
    weights: Float[np.ndarray, "target source"], source: Sequence[str], target: Sequence[str], title: str = ""
) -> Figure:
    """A heat map with every token written beside its row or above its column; white is 0, the darkest is 1."""
    letters = lettering([*source, *target])
    size = [min(LARGEST, 1.6 + CELL * count) for count in (len(source), len(target))]
    figure = Figure(figsize=(size[0] + 0.6, size[1]), layout="constrained")
    axes = figure.subplots()
    picture = axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(source)), labels=visible(source, letters))
    axes.set_yticks(range(len(target)), labels=visible(target, letters))
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set(fontfamily=list(letters.families), parse_math=False)  # a dollar sign is no formula
    for label in axes.get_xticklabels():
        label.set_rotation(90 if len(label.get_text()) > 2 else 0)
    axes.tick_params(length=0)
    axes.set_xticks(np.arange(len(source) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(target) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#dddddd", linewidth=0.5)
    axes.tick_params(which="minor", length=0)
    figure.colorbar(picture, ax=axes, shrink=0.8, label="weight")
    if title:
        figure.suptitle(title, parse_math=False, fontfamily=list(letters.families))
    if letters.note:
        figure.supxlabel(letters.note, fontsize="x-small", color="#666666")
    return figure


def visible(tokens: Sequence[str], letters: Lettering) -> list[str]:
    """Tokens as they can be drawn, blanks included."""
    return [letters.spelled(token.replace(" ", BLANK)) for token in tokens]


def save(figure: Figure, path: Path) -> None:
    """Writes a picture in the format that its name ends in. The text in an SVG stays text."""
    if path.suffix.lower() not in FORMATS:
        fix = f"write {path.with_suffix('.png')}"
        raise wrong("output", path, f"a name that ends in {', '.join(FORMATS)}", fix)
    if not path.parent.is_dir():
        raise wrong("output", path, "a folder that exists", f"make {path.parent} first")
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(path, dpi=150)
