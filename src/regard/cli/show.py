"""`regard show`: the attention of a run in the terminal or as a picture, for every task."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from regard.cli.figures import FigureFlags, FigureOptions
from regard.cli.output import open_console
from regard.cli.runs import LoadFlags, LoadOptions
from regard.errors import wrong

if TYPE_CHECKING:
    from regard.tasks.prediction import LabeledWeights


def show(
    run: Path,
    *item: str,
    output: Path | None = None,
    html: Path | None = None,
    load_options: LoadFlags = None,
    figure_options: FigureFlags = None,
) -> None:
    """Ask a trained model about one thing and show where it looked; with --curves, draw how its training went.

    Parameters
    ----------
    run
        The run folder.
    item
        What to ask about, as for regard predict; an example of the held-out data where nothing is named.
    output
        A picture (.png, .svg, .pdf) or a page (.html) instead of the map in the terminal.
    html
        A page to look through, with exact weights.
    """
    output, html = choose_outputs(output, html)
    prediction = (load_options or LoadOptions()).load_predictor(run).predict(item)
    console = open_console()
    console.print(prediction.text, markup=False, soft_wrap=True)
    if html is not None:
        prediction.save(html)
        console.print(f"page: {html}", markup=False)
        return
    if output is None:
        if prediction.map is None:
            prediction.draw()  # raises if there is no attention at all
            raise wrong("show", "attention that is no table", "a picture of it", "write --output picture.png")
        print_map(prediction.map, console)
        return
    options = figure_options or FigureOptions()
    title, language = options.choose_title(run.resolve().name), options.language
    prediction.save(output, title, language, scale=options.scale, background=options.background)
    console.print(f"picture: {output}", markup=False)


def print_map(shown: "LabeledWeights", console: Console) -> None:
    """Print weights in the terminal, under a line that says which they are and how dark the largest is."""
    from regard.inspect.draw.terminal import describe_scale, render_heat_map

    weights, columns, rows, title = shown
    console.print(f"{title or 'attention'}; {describe_scale(weights)}", markup=False)
    console.print(render_heat_map(weights, columns, rows, console.width), soft_wrap=True)


def choose_outputs(output: Path | None, html: Path | None) -> tuple[Path | None, Path | None]:
    """Return the paths of the picture and of the page: an output that ends in .html is a page."""
    is_page = output is not None and output.suffix.lower() in (".html", ".htm")
    return (None, output) if is_page else (output, html)
