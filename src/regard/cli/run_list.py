"""`regard runs`: the runs in a folder, the latest first."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from regard.cli.output import JsonFlag, open_console, print_json
from regard.cli.show_curves import read_points
from regard.errors import RegardError, wrong

HEADERS = ("run", "task", "data", "goal", "best", "step", "age", "")
NUMERIC = ("best", "step", "age")


@dataclass(frozen=True)
class RunSummary:
    """What a table shows of a run; `best` is the value of the goal, `age` the seconds since something was written."""

    run: str
    task: str
    data: str
    goal: str
    best: float | None
    step: int
    age: float
    training: bool
    error: str = ""


def show_runs(*folder: Path, as_json: JsonFlag = False) -> None:
    """Show the runs in some folders: task, data, goal and its best value, steps, age, and whether it trains now.

    Parameters
    ----------
    folder
        Folders with runs in them, or run folders; the folder `runs` if none is named.
    as_json
        One JSON object for each run.
    """
    found = sorted((summarize_run(run) for run in find_runs(folder or (Path("runs"),))), key=lambda one: one.age)
    if as_json:
        for one in found:
            print_json(asdict(one))
        return
    console = open_console()
    for line in format_runs([one for one in found if not one.error], console.width if console.is_terminal else None):
        console.print(line, markup=False, no_wrap=True, overflow="ignore", crop=False)
    for one in found:
        if one.error:
            console.print(f"not read: {one.run}: {one.error}", markup=False)


def format_runs(found: Sequence[RunSummary], width: int | None = None) -> list[str]:
    """Return the lines of a table; if they are wider than `width`, the name of each run has a line of its own.

    >>> one = RunSummary("runs/curve", "regression", "curve", "error", 0.0791, 400, 7.0, False)
    >>> print("\\n".join(format_runs([one])))
    run         task        data   goal     best  step  age
    runs/curve  regression  curve  error  0.0791   400  7 s
    >>> print("\\n".join(format_runs([one], 50)))
      task        data   goal     best  step  age
    runs/curve
      regression  curve  error  0.0791   400  7 s
    """
    rows = [HEADERS, *map(list_cells, found)] if found else []
    table = align_columns(rows)
    if width is None or all(cell_len(line) <= width for line in table):
        return table
    header, *facts = (f"  {line}" for line in align_columns([row[1:] for row in rows]))
    return [header, *(line for one, fact in zip(found, facts, strict=True) for line in (one.run, fact))]


def list_cells(one: RunSummary) -> tuple[str, ...]:
    """Return what the row of a run says, in the order of `HEADERS`."""
    best, state = "" if one.best is None else f"{one.best:.4g}", "training now" if one.training else ""
    return one.run, one.task, one.data, one.goal, best, f"{one.step}", format_age(one.age), state


def align_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a line for each row, with the columns below each other; those of numbers end together."""
    columns = list(zip(*rows, strict=True))
    numeric = [column[0] in NUMERIC for column in columns]
    widths = [max(map(cell_len, column)) for column in columns]
    return [
        "  ".join(
            " " * (width - cell_len(cell)) + cell if right else cell + " " * (width - cell_len(cell))
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """Return the run folders among these folders and in them; raise if there is none."""
    for folder in folders:
        if not folder.is_dir():
            fix = "name the folder that holds your runs, or make one with regard train"
            raise wrong("folder", f"no folder {folder}", "a folder with runs", fix)
    candidates = [path for folder in folders for path in (folder, *sorted(folder.iterdir()))]
    runs = list(dict.fromkeys(path for path in candidates if (path / "versions.json").is_file()))
    if not runs:
        names = ", ".join(map(str, folders))
        raise wrong("folder", f"{names} without a run", "a folder with runs", "make one with regard train")
    return runs


def summarize_run(run: Path) -> RunSummary:
    """Return what there is to say about a run; one that cannot be read says why."""
    from regard.tasks import import_task, read_config
    from regard.training.lock import check_free

    age = max(0.0, time.time() - max(read_time(run / name) for name in ("versions.json", "metrics.jsonl")))
    try:
        config = read_config(run)
        definition = import_task(config.task)
        goal = definition.get_goal(config)
        data = definition.shorten_data_name(str(getattr(config.data, definition.data_field, ""))) or "generated"
        points = read_metrics(run)
    except RegardError as error:
        return RunSummary(str(run), "", "", "", None, 0, age, False, str(error))
    try:
        check_free(run)
        training = False
    except RegardError:
        training = True
    step, best = find_best(points, goal.metric)
    return RunSummary(str(run), config.task, data, goal.metric, best, step, age, training)


def read_time(path: Path) -> float:
    """Return when a file was changed; long ago if there is none."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def find_best(points: Sequence[Mapping[str, Any]], metric: str) -> tuple[int, float | None]:
    """Return the last step of some points, and the value of a metric where it was best.

    >>> find_best([{"step": 5, "metrics": {"bleu": 7.5}, "best": True}, {"step": 6, "loss": 1.5}], "bleu")
    (6, 7.5)
    """
    best = [point["metrics"].get(metric) for point in points if point.get("best") and "metrics" in point]
    return max((point["step"] for point in points), default=0), (best or [None])[-1]


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Return the points of a run, none before its first; a line that is not whole is left out: it is being written."""
    return read_points(run) if (run / "metrics.jsonl").is_file() else []


def format_age(seconds: float) -> str:
    """Return an age in its largest unit.

    >>> format_age(5.0), format_age(200.0), format_age(9000.0), format_age(200000.0)
    ('5 s', '3 min', '2 h', '2 d')
    """
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
