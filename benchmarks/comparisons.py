"""Compare and record: `python -m benchmarks.comparisons [NAME …]`, by `regard compare NAME --json`."""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from benchmarks.formats import tabulate_rows
from benchmarks.recipes.runs import get_date
from benchmarks.results import FOLDER, write
from benchmarks.worker import find_commit
from regard.cli.compare import UNITS, What, format_number
from regard.cli.machine import describe_machine
from regard.compute.timing import summarize

NAMES: tuple[str, ...] = get_args(What)
LAYERS = "layers"
LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048)


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """What one comparison said, and where."""

    name: str
    machine: dict[str, Any]
    date: str
    commit: str
    found: dict[str, Any]


def run_comparison(
    name: str, folder: Path = FOLDER, *more: str, lengths: tuple[int, ...] = LENGTHS
) -> ComparisonResult:
    """Run one comparison by its command, with one thread."""
    command = [sys.executable, "-m", "regard", "compare", name, "--json", *more]
    command += ["--output", str(folder / name_picture(name))]
    if name == LAYERS:
        command += [f"--lengths={length}" for length in lengths]
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    result = ComparisonResult(name, describe_machine()._asdict(), get_date(), find_commit(), json.loads(done.stdout))
    write(asdict(result), folder / f"compare-{name}.json")
    return result


def name_picture(name: str) -> str:
    """Return the file of the picture of a comparison."""
    return f"compare-{name}.svg"


def load_results(folder: Path = FOLDER) -> list[ComparisonResult]:
    """Return all recorded comparisons."""
    paths = [folder / f"compare-{name}.json" for name in NAMES]
    return [ComparisonResult(**json.loads(path.read_text(encoding="utf-8"))) for path in paths if path.is_file()]


def render_page(found: list[ComparisonResult]) -> str:
    """Return the whole of docs/compare.md."""
    head = "# Compared\n\n<!-- made by python -m benchmarks.report: do not edit -->\n"
    how = (
        "Each by one command, `regard compare NAME`, with one thread; recorded by `python -m benchmarks.comparisons`.\n"
    )
    return "\n".join(
        [head, how, *(render_layers(one) if one.name == LAYERS else render_mechanisms(one) for one in found)]
    )


def describe_setting(one: ComparisonResult) -> str:
    """Return where and when it was compared."""
    machine = one.machine
    versions = f"torch {machine['torch']}, Python {machine['python']}, {machine['system']}"
    return f"One core of {machine['processor']}; {versions}. {one.date}, commit {one.commit}."


def render_mechanisms(one: ComparisonResult) -> str:
    """Return a line for each mechanism, with a column for each set if there are several."""
    found: list[dict[str, Any]] = one.found["rows"]
    several = any("; " in row["name"] for row in found)
    rows = (
        tabulate_rows(found) if several else ["| | median | from | to | seconds of one core |", "|---|---|---|---|---|"]
    )
    for row in found if not several else ():
        values = row["values"]
        figures = (summarize(values).median, min(values), max(values))
        shown = " | ".join(f"{value:.4g}" for value in figures)
        rows.append(f"| {row['name']} | {shown} | {row['seconds']:.0f} |")
    note = [one.found["note"], ""] if one.found.get("note") else []
    if several:
        note.insert(0, f"Median of seeds (smallest–largest). {describe_seconds(found)}\n")
    if one.found.get("example"):
        note += ["```text", *one.found["example"], "```", ""]
    picture = f"![every seed, and the median](../benchmarks/results/{name_picture(one.name)})"
    return "\n".join(
        [f"## {one.name}", "", one.found["title"] + ".", "", *rows, "", *note, picture, "", describe_setting(one), ""]
    )


def describe_seconds(rows: list[dict[str, Any]]) -> str:
    """Return the seconds of one training of each variant."""
    seconds = {row["name"].partition("; ")[0]: row["seconds"] for row in rows}
    return f"Seconds of one core: {', '.join(f'{name} {value:.0f}' for name, value in seconds.items())}."


def render_layers(one: ComparisonResult) -> str:
    """Return a table for each quantity, and the picture of all."""
    # Imported here: it needs torch, and nothing else in this file does.
    from regard.models.layer_kinds import FORMULAS, RADIUS

    lengths, parts = one.found["lengths"], ["## layers", ""]
    parts += [
        f"Convolution (k = {one.found['kernel']}; dilated: k to the power of l apart in layer l), recurrence, "
        f"self-attention, a window of {RADIUS} positions at each side and linear attention, of equal parameters, "
        "beside the formulas. "
        "The longest path counts the layers of a stack until the last position sees the first, times the steps in one.",
        "",
    ]
    for quantity, (title, unit) in UNITS.items():
        columns = ["", "d", *(f"n = {length:,}" for length in lengths), "formula"]
        parts += [f"**{title}**", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for name, curves in one.found["layers"].items():
            figures = [format_number(value / unit) for value in curves[quantity]]
            formula = f"O({FORMULAS[name][quantity].text})"
            parts.append(f"| {' | '.join([name, str(one.found['widths'][name]), *figures, formula])} |")
        parts.append("")
    parts += [
        f"![marks: measured; lines: the formulas](../benchmarks/results/{name_picture(LAYERS)})",
        "",
        describe_setting(one),
        "",
    ]
    return "\n".join(parts)


def main() -> int:
    """Compare, record, and write the page again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparisons", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}; all where none is given")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        expected = f"expected some of {', '.join(NAMES)}; fix: check the name"
        print(f"comparisons: got {', '.join(unknown)}, {expected}", file=sys.stderr)
        return 2
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    from benchmarks import report

    for name in given.names or NAMES:
        print(
            render_mechanisms(run_comparison(name)) if name != LAYERS else render_layers(run_comparison(name)),
            flush=True,
        )
        report.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
