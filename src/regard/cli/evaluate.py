"""`regard evaluate`: how good a run is on held-out data, for every task."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.table import Table

from regard.cli.output import JsonFlag, open_console
from regard.cli.runs import LoadFlags, LoadOptions, RunFolder, Split

if TYPE_CHECKING:
    from regard.tasks.prediction import EvaluationReport


def evaluate(
    run: RunFolder, *data: str, split: Split = "test", load_options: LoadFlags = None, as_json: JsonFlag = False
) -> None:
    """Measure a run on held-out data. A run of a task with flags of its own shows them: regard evaluate RUN --help.

    Parameters
    ----------
    data
        Other data of the same kind, as for regard train; that of the run if it is not given.
    split
        Which part of the run's own data.
    as_json
        One JSON object for all sets.
    """
    from regard.tasks import import_task, read_task_name

    named = import_task(read_task_name(run)).join_data_names(data) if data else None
    reports = (load_options or LoadOptions()).load_predictor(run).evaluate(named, split)
    if as_json:
        print(json.dumps({name: {"items": one.items, **one.metrics} for name, one in reports.items()}))
    else:
        show_reports(reports)


def show_reports(reports: "Mapping[str, EvaluationReport]") -> None:
    """Print a line for each set with its metrics, then the notes."""
    console = open_console()
    names = list(dict.fromkeys(name for one in reports.values() for name in one.metrics))
    table = Table("", "items", *names, box=None, pad_edge=False)
    for name, one in reports.items():
        figures = [f"{one.metrics[metric]:.4g}" if metric in one.metrics else "" for metric in names]
        table.add_row(name, str(one.items), *figures)
    console.print(table)
    for note in dict.fromkeys(note for one in reports.values() for note in one.notes):
        console.print(note, markup=False)
