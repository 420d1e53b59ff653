"""`regard compare`: what kinds of layers cost against the length, and mechanisms against each other on one task."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.table import Table

from regard.errors import wrong

if TYPE_CHECKING:
    from regard.models.complexity import Cost

# The tables, and which of the formulas of a layer stands beside each.
PARTS = {"time, ms": None, "operations, millions": 0, "longest path": 1, "steps in a row": 2}
What = Literal["layers", "bahdanau-luong", "soft-hard", "global-local"]


def compare(
    what: What = "layers",
    *,
    parameters: int = 16384,
    lengths: tuple[int, ...] = (16, 64, 256, 1024),
    seeds: int = 3,
    output: Path = Path("compare.png"),
) -> None:
    """Compare convolution, recurrence and self-attention at equal parameters, or two mechanisms on one task.

    Parameters
    ----------
    what
        layers: time, operations, longest path and steps in a row against the length, beside the formulas. Others:
        mechanisms that are trained on one task from several seeds.
    parameters
        Of each layer, about.
    lengths
        Of the sequences that layers are given.
    seeds
        Trainings of each mechanism.
    output
        The plots of layers (.png, .svg, .pdf).
    """
    if seeds < 1:
        raise wrong("--seeds", seeds, "at least 1", "write --seeds 3")
    if what == "layers":
        compare_layers(parameters, lengths, output)
    else:
        compare_mechanisms(what, seeds)


def compare_layers(parameters: int, lengths: tuple[int, ...], output: Path) -> None:
    """Measures each kind at each length, beside its formulas."""
    from regard.draw.alignment import save
    from regard.draw.complexity import complexity
    from regard.models.complexity import FORMULAS, cost, exponent, layers

    if len(lengths) < 2 or min(lengths) < 2:
        raise wrong("--lengths", lengths, "at least two numbers above 1", "write --lengths 16 --lengths 64")
    lengths = tuple(sorted(set(lengths)))
    costs = {
        name: [cost(layer, width, length) for length in lengths] for name, (layer, width) in layers(parameters).items()
    }
    widths = {name: width for name, (_, width) in layers(parameters).items()}
    columns = ("", "d", *(f"n = {length}" for length in lengths))
    console = Console(highlight=False)
    for title, place in PARTS.items():
        table = Table(*columns, "formula", box=None, pad_edge=False, title=f"\n{title}", title_justify="left")
        for name, row in costs.items():
            table.add_row(name, str(widths[name]), *(figure(one, title) for one in row), formula(FORMULAS[name], place))
        console.print(table)
    slopes = ", ".join(f"{name} n^{exponent(row):.2f}" for name, row in costs.items())
    console.print(f"\noperations grow, over the last two lengths, as {slopes}")
    save(complexity(lengths, curves(costs)), output)
    console.print(f"picture: {output}", markup=False)


def figure(one: "Cost", quantity: str) -> str:
    """One number of a table."""
    if quantity == "time, ms":
        return f"{1e3 * one.seconds.median:.2f}"
    if quantity == "operations, millions":
        return f"{one.operations / 1e6:.2f}"
    return str(one.path if quantity == "longest path" else one.steps)


def formula(formulas: tuple[str, ...], place: int | None) -> str:
    return "" if place is None else f"O({formulas[place]})"


def curves(costs: "dict[str, list[Cost]]") -> dict[str, dict[str, list[float]]]:
    """What is drawn: a line for each kind in each plot."""
    return {
        "seconds": {name: [one.seconds.median for one in row] for name, row in costs.items()},
        "operations": {name: [float(one.operations) for one in row] for name, row in costs.items()},
        "longest path": {name: [float(one.path) for one in row] for name, row in costs.items()},
        "steps in a row": {name: [float(one.steps) for one in row] for name, row in costs.items()},
    }


def compare_mechanisms(what: str, seeds: int) -> None:
    """A line for each mechanism: the median over the seeds, and their range."""
    from regard.tasks.comparing import COMPARISONS, compared

    comparison, console = COMPARISONS[what], Console(highlight=False)
    title = f"{comparison.task} {comparison.data}: {comparison.metric} on {comparison.set}, {seeds} seeds"
    table = Table("", "median", "from", "to", "seconds", box=None, pad_edge=False, title=title, title_justify="left")
    for row in compared(comparison, range(1, seeds + 1)):
        figures = (row.metric.median, min(row.values), max(row.values))
        table.add_row(row.name, *(f"{figure:.4g}" for figure in figures), f"{row.seconds.median:.1f}")
    console.print(table)
