"""`regard show structure`: the diagrams that papers and articles draw of models."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.cli.figures import FigureFlags, FigureOptions
from regard.cli.output import open_console


def show(
    word: Annotated[str, Parameter(show=False)] = "structure", name: str = "", *, figure_options: FigureFlags = None
) -> None:
    """Draw how the parts of a model are joined, with what each is called in regard; without a name, list what there is.

    Parameters
    ----------
    name
        Such as transformer, bahdanau, luong, multi-head.
    """
    from regard.inspect.draw.structure import STRUCTURES, draw_structure

    if not name:
        open_console().print("\n".join(STRUCTURES), markup=False)
        return
    options = figure_options or FigureOptions()
    options.output = options.output or Path(f"{name}.svg")
    options.save(draw_structure(name, options.choose_title(), language=options.language))
