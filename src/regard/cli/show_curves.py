"""`regard show RUN --curves`: loss, metrics and learning rate of one run, or of several over each other."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.figures import FigureFlags, FigureOptions
from regard.cli.output import open_console
from regard.errors import wrong

if TYPE_CHECKING:
    from regard.inspect.draw.curves import RunCurves
    from regard.inspect.draw.words import Language

FEWEST = 8  # bars of a curve in a narrow terminal


def show(
    *runs: Path,
    curves: Annotated[bool, Parameter(negative="", show=False)] = True,
    figure_options: FigureFlags = None,
) -> None:
    """Draw the curves of trainings, finished or not: in the terminal, or as a picture.

    Parameters
    ----------
    runs
        The run folders; several are drawn over each other.
    """
    from regard.inspect.draw.curves import draw_curves

    options = figure_options or FigureOptions()
    options.check()
    names = [run.resolve().name for run in runs]
    if len(set(names)) < len(names):  # of equal names, the folders around them say which is which
        names = [str(run) for run in runs]
    found = {name: read_curves(run) for name, run in zip(names, runs, strict=True)}
    title = options.choose_title(names[0] if len(names) == 1 else "")
    if options.output is None:
        print_curves(found, options.language)
    else:
        options.save(draw_curves(found, title, language=options.language))


def print_curves(runs: "Mapping[str, RunCurves]", language: "Language") -> None:
    """Print a line for each curve: what it is of, bars from its lowest to its highest value, its first and its last."""
    from rich.cells import cell_len
    from rich.table import Table

    from regard.inspect.draw.curves import list_quantities
    from regard.inspect.draw.terminal import render_curve
    from regard.inspect.draw.words import localize

    lines = []
    for quantity in list_quantities(runs):
        for run, curves in runs.items():
            for part, (steps, values) in curves.get(quantity, {}).items():
                words = [localize(quantity, language), localize(part, language), *([run] if len(runs) > 1 else [])]
                span = f"{localize('step', language)} {steps[0]} → {steps[-1]}"
                lines.append((values, [*words, f"{values[0]:.4g} → {values[-1]:.4g}", span]))
    widths = [max(map(cell_len, column)) + 2 for column in zip(*(cells for _, cells in lines), strict=True)]
    console, table = open_console(), Table.grid(padding=(0, 2))
    for values, (*words, change, span) in lines:
        table.add_row(*words, render_curve(values, max(FEWEST, console.width - sum(widths))), change, span)
    console.print(table)


def read_curves(run: Path) -> "RunCurves":
    """Return the curves of a run; a line that is not whole, because the run is writing it, is left out."""
    from regard.inspect.draw.curves import Curve

    points: dict[str, dict[str, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    for point in read_points(run):
        values = {("loss", "training"): point.get("loss"), ("learning rate", "training"): point.get("rate")}
        values |= {(name, "validation"): value for name, value in point.get("metrics", {}).items()}
        for (quantity, part), value in values.items():
            if value is not None:
                points[quantity][part].append((point["step"], float(value)))
    order = sorted(points, key=lambda quantity: (quantity != "loss", quantity == "learning rate"))
    return {name: {part: Curve(*zip(*line, strict=True)) for part, line in points[name].items()} for name in order}


def read_points(run: Path) -> list[dict[str, Any]]:
    """Return the points of a run's metrics file; raise if there is none."""
    from regard.datasets.bounds import check_file, get_bound
    from regard.training.points import parse_point

    path = run / "metrics.jsonl"
    if not path.is_file():
        raise wrong("run", f"{run}, which has no metrics.jsonl", "a run folder", "name a folder that regard train made")
    check_file("metrics", path, get_bound("run folder", "metrics bytes"))
    return [point for line in path.read_bytes().splitlines() if (point := parse_point(line)) is not None]
