"""A whole data set: what of it is there, and how the rest is had."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.datasets.bounds import parse_json
from regard.datasets.extraction import extract_archive
from regard.datasets.files import Dataset, File
from regard.datasets.locations import list_data_roots
from regard.datasets.transfer import DownloadError, RetryPolicy, download_file, wrap_disk_errors
from regard.errors import format_message

RECORD = ".regard.json"  # the sums of what was fetched, and the members of archives
FileCallback = Callable[[File, int, int | None], None]


def download_dataset(
    dataset: Dataset,
    folder: Path,
    *,
    mirror: str = "",
    watch: FileCallback | None = None,
    patience: RetryPolicy | None = None,
) -> Iterator[str]:
    """Fetches what is missing, and says of each file what became of it. An archive is removed once it is unpacked.

    A `mirror` is another address under which files of the same names lie; sizes and sums are those of the authors.
    """
    record = read_record(folder)
    for file in dataset.files:
        members = record.get(file.name, {}).get("members", [])
        if members and all((folder / member).is_file() for member in members):
            yield f"{file.name}: unpacked already, {len(members)} files"
            continue
        source = replace(file, address=f"{mirror.rstrip('/')}/{file.name}") if mirror else file
        target = folder / file.name
        there = target.is_file()
        total = download_file(source, target, lambda done, size, file=file: watch and watch(file, done, size), patience)  # type: ignore[misc]
        record[file.name] = {"sha256": check_unchanged(file, record, total)}
        yield f"{file.name}: {'already there' if there else 'fetched'}, sha256 {total}"
        if file.extraction is not None:
            paths = extract_archive(file, target, folder)
            record[file.name]["members"] = [str(path.relative_to(folder)) for path in paths]
            target.unlink()
            yield f"{file.name}: unpacked, {len(paths)} files"
        with wrap_disk_errors(folder / RECORD):
            (folder / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")


def check_unchanged(file: File, record: dict[str, dict[str, Any]], total: str) -> str:
    """The sum of a file that has none to compare with; raises where it was another one last time."""
    before = record.get(file.name, {}).get("sha256")
    if before not in (None, total) and not file.has_checksum:
        fix = f"remove {RECORD} if the authors have replaced it"
        raise DownloadError(format_message(file.name, f"sha256 {total}", f"{before}, as last time", fix))
    return total


def read_record(folder: Path) -> dict[str, dict[str, Any]]:
    """What was written down about a folder; nothing where there is no record or it cannot be read."""
    try:
        found = parse_json((folder / RECORD).read_text(encoding="utf-8")) if (folder / RECORD).is_file() else {}
        return {
            str(name): {**facts, "members": list(map(str, facts.get("members", [])))} for name, facts in found.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def find_cached_folder(dataset: Dataset) -> Path | None:
    """The folder that has something of this data set, wherever that is looked for."""
    for root in list_data_roots():
        folder = root / dataset.name
        if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
            return folder
    return None
