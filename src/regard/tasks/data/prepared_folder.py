"""Folders of the cache that are made once: whole or not there, by one process while the others wait."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from regard.datasets.bounds import parse_json
from regard.datasets.plain_files import read_json
from regard.errors import wrong
from regard.training.storage import (
    DELETING_PREFIX,
    create_atomically,
    get_temporary_path,
    lock_file,
    remove_folder,
    wrap_storage_errors,
    write_file,
)

MANIFEST = "manifest.json"
KEPT = 8  # folders of one kind
DAY = 86_400  # seconds; longer than a run goes without opening its data
FORMAT = 1  # of the files of these folders: with another one they are made again
SETTLED = 2.0  # seconds after which another change of a file has another time, on any file system
Facts = Mapping[str, Any]  # what a folder was made of, as JSON has it
Build = Callable[[Path], Facts]  # writes files to a folder, and returns what is worth knowing about them


def prepare_folder(folder: Path, facts: Facts, build: Build) -> Facts:
    """Return what `build` returned when it made a folder of these facts; if it is not there, `build` makes it now.

    Several processes may ask at once: one builds, the others wait. If that one dies, the next takes its place, and
    begins again; a folder that was made of other things, or has lost something, is made again.
    """
    known = read_manifest(folder, facts)
    if known is not None:
        return known
    with wrap_storage_errors("data", folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock_file(folder.with_name(f"{folder.name}.lock")):
            known = read_manifest(folder, facts)
            if known is None:
                known = build_folder(folder, facts, build)
                remove_old_folders(folder)
            return known


def build_folder(folder: Path, facts: Facts, build: Build) -> Facts:
    """Make a folder and return what `build` returned."""
    if folder.exists():
        remove_folder(folder)
    with create_atomically(folder) as place:
        place.mkdir()
        known = build(place)
        files = [path for path in sorted(place.rglob("*")) if path.is_file()]
        sizes = {str(path.relative_to(place)): path.stat().st_size for path in files}
        manifest = {"format": FORMAT, "facts": facts, "sizes": sizes, "known": known}
        write_file(place / MANIFEST, json.dumps(manifest, ensure_ascii=False).encode())
    return known


def read_manifest(folder: Path, facts: Facts) -> Facts | None:
    """Return what is known about a folder; None if it is not there, was made of other things, or is not whole."""
    try:
        found = read_json(folder / MANIFEST)
        whole = all((folder / name).stat().st_size == size for name, size in found["sizes"].items())
        known: Facts = found["known"]
        # As JSON has them: a tuple comes back as a list.
        same = found["format"] == FORMAT and found["facts"] == parse_json(json.dumps(facts))
        if same and whole:
            os.utime(folder / MANIFEST)  # when it was used last
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return known if same and whole else None


def remove_old_folders(new: Path) -> None:
    """Remove what is beside a new folder and was not used for a day, if it can no longer be used or there are many.

    What cannot be used was made of files that have changed or are gone, or by another version. Of folders of one kind,
    such as the vocabularies of a corpus, the last few are kept. What `build_folder` did not make is not touched.
    """
    with suppress(OSError):
        ages = {path.parent: time.time() - path.stat().st_mtime for path in new.parent.glob(f"*/{MANIFEST}")}
        kind = new.name.rpartition("-")[0]
        same = [folder for folder in sorted(ages, key=lambda one: ages[one]) if folder.name.rpartition("-")[0] == kind]
        for folder, age in ages.items():
            if folder != new and age > DAY and (folder in same[KEPT:] or is_outdated(folder)):
                with suppress(OSError), lock_file(folder.with_name(f"{folder.name}.lock"), wait=False):
                    remove_folder(folder)
        for name in (get_temporary_path(new.parent / "*").name, f"{DELETING_PREFIX}*"):  # of a process that was killed
            for left in new.parent.glob(name):
                if time.time() - left.stat().st_mtime > DAY:
                    shutil.rmtree(left, ignore_errors=True)


def is_outdated(folder: Path) -> bool:
    """Return whether a folder is of another version, or was made of files that have changed or are gone."""
    try:
        found = read_json(folder / MANIFEST)
        files = found["facts"].get("files", [])
        return bool(found["format"] != FORMAT or files != describe_files([Path(path) for path, *_ in files]))
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def describe_files(paths: Sequence[Path]) -> list[list[Any]]:
    """Return what tells one version of files from another without reading them: path, size and time of change."""
    found = [(path, path.stat()) for path in paths]
    return [[os.path.realpath(path), status.st_size, status.st_mtime_ns] for path, status in found]


@contextmanager
def watch_files(paths: Sequence[Path]) -> Iterator[None]:
    """Raise if files change while the block runs; wait first until the last change is certainly over."""
    before = describe_files(paths)
    while any(0 <= time.time() - changed / 1e9 < SETTLED for _, _, changed in before):
        time.sleep(0.05)
        before = describe_files(paths)
    yield
    for path, now, then in zip(paths, describe_files(paths), before, strict=True):
        if now != then:
            raise wrong("data", f"{path.name}, which changed while it was read", "a file that stays", "start again")


@contextmanager
def show_progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar in a terminal, or write a line; yield a function that is given how much more is done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(title, markup=False, highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda more: bar.advance(task, more)
