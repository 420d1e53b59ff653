"""`regard show structure`: the diagrams that papers and articles draw of models."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from regard.cli.figures import FigureFlags, FigureOptions
from regard.cli.output import open_console

if TYPE_CHECKING:
    from regard.inspect.draw.words import Language

HEADINGS = {"en": ("part", "in regard", "goes to"), "zh": ("部分", "在 regard 中", "去向")}


def show(
    word: Annotated[str, Parameter(show=False)] = "structure", name: str = "", *, figure_options: FigureFlags = None
) -> None:
    """Tell how the parts of a model are joined, and what each is called in regard; as a picture with --output.

    Without a name, list what there is.

    Parameters
    ----------
    name
        Such as transformer, bahdanau, luong, multi-head.
    """
    from regard.inspect.draw.structure import STRUCTURES, draw_structure

    options = figure_options or FigureOptions()
    if not name:
        open_console().print("\n".join(STRUCTURES), markup=False)
    elif options.output is None:
        print_structure(name, options.language)
    else:
        options.save(draw_structure(name, options.choose_title(), language=options.language))


def print_structure(name: str, language: "Language") -> None:
    """Print a line for each part: what it does, what it is called in regard, and where its result goes."""
    from rich.table import Table
    from rich.text import Text

    from regard.cli.formulas import render_formulas
    from regard.inspect.draw.structure import find_structure, list_connections

    table = Table(*HEADINGS[language], box=None, padding=(0, 2, 0, 0))
    for row in list_connections(find_structure(name), language):
        table.add_row(*(Text(render_formulas(cell)) for cell in row))
    open_console().print(table)
