"""`regard show positions`: what sinusoidal positions look like, and that a shift is a rotation."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.output import open_console
from regard.errors import wrong


def show(
    word: Annotated[str, Parameter(show=False)] = "positions",
    *,
    length: int = 60,
    dim: int = 32,
    shift: int = 7,
    output: Path = Path("positions.png"),
) -> None:
    """Draw sinusoidal positions as a heat map and as curves, and check that moving on is a rotation.

    Parameters
    ----------
    length
        Positions.
    dim
        Numbers in the vector of a position.
    shift
        How far to move on for the check.
    output
        The picture (.png, .svg, .pdf).
    """
    if length < 2:
        raise wrong("--length", length, "at least 2", "write --length 60")
    from regard.inspect.draw.output import save_figure
    from regard.inspect.draw.positions import draw_positions
    from regard.layers.positions import rotation, sinusoids

    table = sinusoids(length, dim)
    turned = table @ rotation(shift, dim).T
    difference = float((turned - sinusoids(length, dim, start=shift)).abs().max())
    save_figure(draw_positions(table.numpy(), "sinusoidal positions"), output)
    console = open_console()
    holds = "holds" if difference < 1e-9 else "does not hold"
    line = f"p[i + {shift}] = R p[i] for all {length} positions: {holds}, largest difference {difference:.1e}"
    console.print(line, markup=False)
    console.print(f"picture: {output}", markup=False)
