"""`regard show positions`: what sinusoidal positions look like, and that a shift is a rotation."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.figures import FigureFlags, FigureOptions
from regard.cli.output import open_console
from regard.errors import wrong

if TYPE_CHECKING:
    from rich.console import Console
    from torch import Tensor


def show(
    word: Annotated[str, Parameter(show=False)] = "positions",
    *,
    length: int = 60,
    dim: int = 32,
    shift: int = 7,
    figure_options: FigureFlags = None,
) -> None:
    """Draw sinusoidal positions, in a picture with their curves, and check that moving on is a rotation.

    Parameters
    ----------
    length
        Positions.
    dim
        Numbers in the vector of a position.
    shift
        How far to move on for the check.
    """
    if length < 2:
        raise wrong("--length", length, "at least 2", "write --length 60")
    from regard.layers.positions import rotation, sinusoids

    table = sinusoids(length, dim)
    turned = table @ rotation(shift, dim).T
    difference = float((turned - sinusoids(length, dim, start=shift)).abs().max())
    console, options = open_console(), figure_options or FigureOptions()
    if options.output is None:
        print_positions(table, console)
    holds = "holds" if difference < 1e-9 else "does not hold"
    line = f"p[i + {shift}] = R p[i] for all {length} positions: {holds}, largest difference {difference:.1e}"
    console.print(line, markup=False)
    if options.output is not None:
        from regard.inspect.draw.positions import draw_positions
        from regard.inspect.draw.words import localize

        title = options.choose_title(localize("sinusoidal positions", options.language))
        options.save(draw_positions(table.numpy(), title, language=options.language))


def print_positions(table: "Tensor", console: "Console") -> None:
    """Print a row for each position; the numbers are from -1 to 1, the darkest is 1."""
    from regard.inspect.draw.terminal import render_heat_map

    rows, columns = (tuple(map(str, range(size))) for size in table.shape)
    console.print("sinusoidal positions: a row for each, a column for each number; blank is -1, █ is 1", markup=False)
    console.print(render_heat_map(((table + 1) / 2).tolist(), columns, rows, console.width), soft_wrap=True)
