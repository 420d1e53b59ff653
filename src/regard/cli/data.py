"""`regard data`: the data sets that tasks know by name, and how they are had."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from regard.datasets import DATASETS, KNOWN, REGARD_DATA, Dataset, File, get, home, roots, where
from regard.errors import nearest, wrong

app = App(name="data", help="Show the data sets that tasks know by name, and fetch them.", help_format="plaintext")


@app.default
def show() -> None:
    """Show every known data set: its license, its size, and where it is or would be."""
    console = Console(highlight=False, soft_wrap=True)
    table = Table("name", "download", "here", "", box=None, pad_edge=False)
    for dataset in DATASETS:
        table.add_row(dataset.name, size_of(dataset), str(where(dataset) or "no"), dataset.about)
        table.add_row("", "", "", f"license: {dataset.license}", style="dim")
        if dataset.unchecked:
            table.add_row("", "", "", dataset.unchecked, style="dim")
    console.print(table)
    console.print(f"looked for in: {', '.join(str(root / 'NAME') for root in roots())}", markup=False)
    console.print(f"fetched to {home()} by regard data get NAME; set {REGARD_DATA} to change that", markup=False)
    console.print("every task also takes a folder or file of your own in place of a name", markup=False)


@app.command(name="get")
def fetch(
    name: str,
    *,
    folder: Path | None = None,
    mirror: Annotated[str, Parameter(allow_leading_hyphen=False)] = "",
) -> None:
    """Fetch a data set from its authors, after showing its license. What is there already is checked.

    Parameters
    ----------
    name
        One of those that regard data lists.
    folder
        Where to put it; the folder of its name among those that are looked into, where it is not given.
    mirror
        Another address under which the same files lie. Sizes and sums must still be those of the authors.
    """
    dataset = known(name)
    place = folder if folder is not None else home() / dataset.name
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{dataset.name}: {dataset.about}\nlicense: {dataset.license}\nsee {dataset.home}", markup=False)
    if dataset.unchecked:
        console.print(f"note: {dataset.unchecked}", markup=False)
    if dataset.notes:
        console.print(f"note: {dataset.notes}", markup=False)
    with bar() as progress:
        tasks = {file.name: progress.add_task(file.name, total=file.size, start=True) for file in dataset.files}

        def watch(file: File, done: int, total: int | None) -> None:
            progress.update(tasks[file.name], completed=done, total=total)

        for line in get(dataset, place, mirror=mirror, watch=watch):
            console.print(line, markup=False)
    console.print(f"{dataset.name} is in {place}", markup=False)


def known(name: str) -> Dataset:
    if name not in KNOWN:
        raise wrong("data set", name, f"one of {', '.join(KNOWN)}", f"write regard data get {nearest(name, KNOWN)}")
    return KNOWN[name]


def bar() -> Progress:
    """On standard error, and only where somebody watches."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not sys.stderr.isatty())


def size_of(dataset: Dataset) -> str:
    """Bytes in words; what is not known is said.

    >>> size_of(KNOWN["squad"]), size_of(KNOWN["fsdd"])
    ('35.1 MB', 'not known')
    """
    if not dataset.size:
        return "not known"
    return f"{dataset.size / 1e6:.1f} MB" + ("" if dataset.complete else " and more")
