"""A whole data set: what of it is there, and how the rest is had."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.bounds import parse_json
from regard.datasets.fetching import FetchError, Patience, fetch, storing
from regard.datasets.files import Dataset, File
from regard.datasets.places import roots
from regard.datasets.unpacking import unpack
from regard.errors import sentence

RECORD = ".regard.json"  # the sums of what was fetched, and the members of archives
Watch = Callable[[File, int, int | None], None]


def get(
    dataset: Dataset, folder: Path, *, mirror: str = "", watch: Watch | None = None, patience: Patience | None = None
) -> Iterator[str]:
    """Fetches what is missing, and says of each file what became of it. An archive is removed once it is unpacked.

    A `mirror` is another address under which files of the same names lie; sizes and sums are those of the authors.
    """
    record = recorded(folder)
    for file in dataset.files:
        members = record.get(file.name, {}).get("members", [])
        if members and all((folder / member).is_file() for member in members):
            yield f"{file.name}: unpacked already, {len(members)} files"
            continue
        source = replace(file, address=f"{mirror.rstrip('/')}/{file.name}") if mirror else file
        target = folder / file.name
        there = target.is_file()
        total = fetch(source, target, lambda done, size, file=file: watch and watch(file, done, size), patience)  # type: ignore[misc]
        record[file.name] = {"sha256": same_as_before(file, record, total)}
        yield f"{file.name}: {'already there' if there else 'fetched'}, sha256 {total}"
        if file.unpacking is not None:
            paths = unpack(file, target, folder)
            record[file.name]["members"] = [str(path.relative_to(folder)) for path in paths]
            target.unlink()
            yield f"{file.name}: unpacked, {len(paths)} files"
        with storing(folder / RECORD):
            (folder / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")


def same_as_before(file: File, record: dict[str, dict[str, Any]], total: str) -> str:
    """The sum of a file that has none to compare with; raises where it was another one last time."""
    before = record.get(file.name, {}).get("sha256")
    if before not in (None, total) and not file.checked:
        fix = f"remove {RECORD} if the authors have replaced it"
        raise FetchError(sentence(file.name, f"sha256 {total}", f"{before}, as last time", fix))
    return total


def recorded(folder: Path) -> dict[str, dict[str, Any]]:
    """What was written down about a folder; nothing where there is no record or it cannot be read."""
    try:
        found = parse_json((folder / RECORD).read_text(encoding="utf-8")) if (folder / RECORD).is_file() else {}
        return {
            str(name): {**facts, "members": list(map(str, facts.get("members", [])))} for name, facts in found.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def where(dataset: Dataset) -> Path | None:
    """The folder that has something of this data set, wherever that is looked for."""
    for root in roots():
        folder = root / dataset.name
        if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
            return folder
    return None
