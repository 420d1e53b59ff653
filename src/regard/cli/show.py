"""`regard show`: the attention of a run in the terminal or as a picture, for every task."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from regard.cli.figures import ShowOptions
from regard.cli.output import open_console, print_path
from regard.cli.runs import LoadOptions, RunFolder
from regard.errors import wrong

if TYPE_CHECKING:
    from regard.tasks.prediction import LabeledWeights


@dataclass
class ShowRunOptions(ShowOptions, LoadOptions):
    """Options of a map of what a run attends to."""

    curves: Annotated[bool, Parameter(negative="")] = False
    "Draw how the training went instead; in the terminal, or as the picture that --output names."


ShowRunFlags = Annotated[ShowRunOptions | None, Parameter(name="*")]


def show(run: RunFolder, *item: str, options: ShowRunFlags = None) -> None:
    """Ask a trained model about one thing and show where it looked; with --curves, draw how its training went.

    Parameters
    ----------
    item
        What to ask about, as for regard predict; an example of the held-out data if nothing is named.
    """
    options = options or ShowRunOptions()
    options.check()
    prediction = options.load_predictor(run).predict(item)
    console = open_console()
    console.print(prediction.text, markup=False, soft_wrap=True)
    if options.html is not None:
        prediction.save(options.html)
        print_path("page", options.html)
        return
    if options.output is None:
        if prediction.map is None:
            prediction.draw()  # raises if there is no attention at all
            raise wrong("show", "attention that is not a table", "a picture of it", "write --output picture.png")
        print_map(prediction.map, console)
        return
    title, language = options.choose_title(run.resolve().name), options.language
    prediction.save(options.output, title, language, scale=options.scale, background=options.background)
    print_path("picture", options.output)


def print_map(shown: "LabeledWeights", console: Console) -> None:
    """Print weights in the terminal, under a line that says which they are and how dark the largest is."""
    from regard.inspect.draw.terminal import describe_scale, render_heat_map

    weights, columns, rows, title = shown
    console.print(f"{title or 'attention'}; {describe_scale(weights)}", markup=False)
    console.print(render_heat_map(weights, columns, rows, console.width), soft_wrap=True)
