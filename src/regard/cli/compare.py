"""`regard compare`: what kinds of layers cost against the length, and mechanisms against each other on one task."""

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.table import Table

from regard.cli.figures import FigureFlags, FigureOptions
from regard.cli.output import JsonFlag, open_console
from regard.errors import wrong

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from regard.models.complexity import CostCurve
    from regard.tasks.comparison import Comparison

# The quantities of layers: what they are called in a table, and the unit of the numbers there.
UNITS = {
    "seconds": ("time of one core, ms", 1e-3),
    "operations": ("operations, millions", 1e6),
    "longest path": ("longest path", 1),
    "steps in a row": ("steps in a row", 1),
    "positions at once": ("positions at once (parallelism)", 1),
}
What = Literal[
    "layers",
    "length",
    "scores",
    "normalizers",
    "norms",
    "norms-lengths",
    "next-vector",
    "memory",
    "bahdanau-luong",
    "soft-hard",
    "global-local",
    "global-local-inverted",
]


def compare(
    what: What = "layers",
    *,
    parameters: int = 16384,
    kernel: int = 3,
    lengths: Annotated[tuple[int, ...], Parameter(consume_multiple=True, negative="")] = (16, 64, 256, 1024),
    seeds: int = 3,
    as_json: JsonFlag = False,
    figure_options: FigureFlags = None,
) -> None:
    """Compare convolution, recurrence and kinds of attention at equal parameters, or mechanisms on one task.

    Parameters
    ----------
    what
        layers: time, operations, longest path, steps in a row and parallelism against the length, beside the
        formulas. Others: mechanisms that are trained on one task from several seeds; soft-hard: the gradients of
        hard attention.
    parameters
        Of each layer, about.
    kernel
        Positions under the filter of the convolutions, an odd number.
    lengths
        Of the sequences that layers are given.
    seeds
        Trainings of each mechanism.
    as_json
        One JSON object instead of tables.
    """
    if seeds < 1:
        raise wrong("--seeds", seeds, "at least 1", "write --seeds 3")
    if what == "layers":
        compare_layers((parameters, kernel), lengths, as_json, figure_options or FigureOptions())
    else:
        compare_mechanisms(what, seeds, as_json, figure_options or FigureOptions())


def compare_layers(sizes: tuple[int, int], lengths: tuple[int, ...], as_json: bool, options: FigureOptions) -> None:
    """Measure each kind of layer of some parameters and kernel at each length, then draw and print it with formulas."""
    from regard.inspect.draw.complexity import draw_complexity
    from regard.models.complexity import measure_curves

    if len(lengths) < 2 or min(lengths) < 2:
        raise wrong("--lengths", lengths, "at least two numbers above 1", "write --lengths 16 64")
    parameters, kernel = sizes
    if kernel < 3 or kernel % 2 == 0:
        raise wrong("--kernel", kernel, "an odd number from 3", "write --kernel 3")
    options.check()
    lengths = tuple(sorted(set(lengths)))
    curves = measure_curves(parameters, lengths, kernel)
    measured = {name: curve.measured for name, curve in curves.items()}
    if options.output is not None:
        expected = {name: curve.expected for name, curve in curves.items()}
        figure = draw_complexity(lengths, measured, expected, options.choose_title(), language=options.language)
        options.save(figure, announced=not as_json)
    if as_json:
        widths = {name: curve.width for name, curve in curves.items()}
        print(json.dumps({"lengths": lengths, "kernel": kernel, "widths": widths, "layers": measured}))
    else:
        show_layers(lengths, curves)


def show_layers(lengths: tuple[int, ...], curves: "dict[str, CostCurve]") -> None:
    """Print a table for each quantity."""
    from regard.models.complexity import estimate_exponent
    from regard.models.layer_kinds import FORMULAS

    console, columns = open_console(), ("", "d", *(f"n = {length}" for length in lengths), "formula")
    for quantity, (title, unit) in UNITS.items():
        table = Table(*columns, box=None, pad_edge=False, title=f"\n{title}", title_justify="left")
        for name, curve in curves.items():
            figures = [format_number(value / unit) for value in curve.measured[quantity]]
            table.add_row(name, str(curve.width), *figures, f"O({FORMULAS[name][quantity].text})")
        console.print(table)
    powers = [f"{name} n^{estimate_exponent(lengths, one.measured['operations']):.2f}" for name, one in curves.items()]
    console.print(f"\noperations grow, over the last two lengths, as {', '.join(powers)}")


def format_number(value: float) -> str:
    """Return a whole number as it is, any other with two decimals."""
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def compare_mechanisms(what: str, seeds: int, as_json: bool, options: FigureOptions) -> None:
    """Train each mechanism from several seeds, then draw and print the median and the range of its metric."""
    from regard.tasks.comparison import compare_variants, describe_findings
    from regard.tasks.known_comparisons import COMPARISONS

    options.check()
    comparison, console = COMPARISONS[what], open_console()
    where = f" on {comparison.sets[0]}" if len(comparison.sets) == 1 else ""
    title = f"{comparison.task} {comparison.data}: {comparison.metric}{where}, {seeds} seeds"
    table = Table("", "median", "from", "to", "seconds", box=None, pad_edge=False, title=title, title_justify="left")
    rows: list[dict[str, Any]] = []
    for row in compare_variants(comparison, range(1, seeds + 1)):
        figures = (row.metric.median, min(row.values), max(row.values))
        table.add_row(row.name, *(f"{figure:.4g}" for figure in figures), f"{row.seconds.median:.1f}")
        rows.append({"name": row.name, "values": row.values, "seconds": row.seconds.median})
    values = {row["name"]: row["values"] for row in rows}
    if options.output is not None:
        options.save(draw_comparison(values, comparison, options), announced=not as_json)
    seen = describe_findings(values, comparison)
    shown = list(comparison.example()) if comparison.example else []
    if as_json:
        print(json.dumps({"title": title, "rows": rows, "note": seen, **({"example": shown} if shown else {})}))
    else:
        console.print(table)
        console.print("".join(f"\n{line}" for line in shown), highlight=False, end="\n" if shown else "")
        console.print(f"\n{seen}")


def draw_comparison(
    values: "Mapping[str, Sequence[float]]", comparison: "Comparison", options: FigureOptions
) -> "Figure":
    """Draw the values of all rows: against a number if the comparison has one, else a line of dots for each row."""
    from regard.inspect.draw.ranges import draw_ranges
    from regard.inspect.draw.seed_curves import draw_seed_curves

    if comparison.curves:
        curves = {f"{quantity}, {comparison.metric}": numbers for quantity, numbers in comparison.curves.items()}
        return draw_seed_curves(values, curves, comparison.axis, options.choose_title(), language=options.language)
    return draw_ranges(values, comparison.metric, options.choose_title(), language=options.language)
