"""`regard data`: the data sets that tasks know by name, and their download."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table

from regard.cli.output import open_console
from regard.datasets import (
    DATASETS,
    DATASETS_BY_NAME,
    REGARD_DATA,
    File,
    PublishedDataset,
    download_dataset,
    find_cached_folder,
    get_data_home,
    list_data_roots,
)
from regard.errors import find_nearest, wrong

app = App(name="data", help="Show the data sets that tasks know by name, and fetch them.", help_format="plaintext")


@app.default
def show() -> None:
    """Show every known data set: its license, its size, and where it is or would be."""
    console = open_console()
    table = Table("name", "download", "here", "", box=None, pad_edge=False)
    for dataset in DATASETS:
        table.add_row(dataset.name, format_size(dataset), str(find_cached_folder(dataset) or "no"), dataset.about)
        table.add_row("", "", "", f"license: {dataset.license}", style="dim")
        if dataset.warning:
            table.add_row("", "", "", dataset.warning, style="dim")
    console.print(table)
    console.print(f"looked for in: {', '.join(str(root / 'NAME') for root in list_data_roots())}", markup=False)
    console.print(
        f"fetched to {get_data_home()} by regard data get NAME; set {REGARD_DATA} to change that", markup=False
    )
    console.print("every task also takes a folder or file of your own in place of a name", markup=False)


@app.command(name="get")
def download(
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
        Where to put it; the folder of its name among those that are looked into if it is not given.
    mirror
        Another address under which the same files lie. Sizes and sums must still be those of the authors.
    """
    dataset = find_dataset(name)
    target = folder if folder is not None else get_data_home() / dataset.name
    console = open_console()
    console.print(f"{dataset.name}: {dataset.about}\nlicense: {dataset.license}\nsee {dataset.homepage}", markup=False)
    for note in filter(None, (dataset.warning, dataset.notes)):
        console.print(f"note: {note}", markup=False)
    with build_progress_bar() as progress:
        tasks = {file.name: progress.add_task(file.name, total=file.size, start=True) for file in dataset.files}

        def watch(file: File, done: int, total: int | None) -> None:
            progress.update(tasks[file.name], completed=done, total=total)

        for line in download_dataset(dataset, target, mirror=mirror, watch=watch):
            console.print(line, markup=False)
    console.print(f"{dataset.name} is in {target}", markup=False)


def find_dataset(name: str) -> PublishedDataset:
    """Return the data set of this name."""
    if name not in DATASETS_BY_NAME:
        fix = f"write regard data get {find_nearest(name, DATASETS_BY_NAME)}"
        raise wrong("data set", name, f"one of {', '.join(DATASETS_BY_NAME)}", fix)
    return DATASETS_BY_NAME[name]


def build_progress_bar() -> Progress:
    """Return a progress bar on standard error; it is hidden unless that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = open_console(errors=True)
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not sys.stderr.isatty())


def format_size(dataset: PublishedDataset) -> str:
    """Return the size of the download in words.

    >>> format_size(DATASETS_BY_NAME["squad"]), format_size(DATASETS_BY_NAME["fsdd"])
    ('35.1 MB', 'not known')
    """
    if not dataset.size:
        return "not known"
    return f"{dataset.size / 1e6:.1f} MB" + ("" if dataset.has_known_size else " and more")
