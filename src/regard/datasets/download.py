"""Download whole data sets: what is cached is checked, what is missing is fetched and unpacked."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.datasets.bounds import parse_json
from regard.datasets.extraction import extract_archive
from regard.datasets.files import Dataset, File
from regard.datasets.transfer import RetryPolicy, download_error, download_file, wrap_disk_errors

RECORD = ".regard.json"  # the sha256 of what was downloaded, and the members of archives
FileCallback = Callable[[File, int, int | None], None]


def download_dataset(
    dataset: Dataset,
    folder: Path,
    *,
    mirror: str = "",
    watch: FileCallback = lambda file, done, total: None,
    patience: RetryPolicy | None = None,
) -> Iterator[str]:
    """Download the files that are missing and yield a line about each. An archive is removed once it is unpacked.

    A `mirror` is another address with files of the same names; sizes and sha256 must be those of the authors.
    """
    record = read_record(folder)
    for file in dataset.files:
        members = record.get(file.name, {}).get("members", [])
        if members and all((folder / member).is_file() for member in members):
            yield f"{file.name}: unpacked already, {len(members)} files"
            continue
        source = replace(file, address=f"{mirror.rstrip('/')}/{file.name}") if mirror else file
        target = folder / file.name
        is_cached = target.is_file()
        sha256 = download_file(source, target, lambda done, total, file=file: watch(file, done, total), patience)  # type: ignore[misc]
        check_unchanged(file, record, sha256)
        record[file.name] = {"sha256": sha256}
        yield f"{file.name}: {'already there' if is_cached else 'fetched'}, sha256 {sha256}"
        if file.extraction is not None:
            paths = extract_archive(file, target, folder)
            record[file.name]["members"] = [str(path.relative_to(folder)) for path in paths]
            target.unlink()
            yield f"{file.name}: unpacked, {len(paths)} files"
        with wrap_disk_errors(folder / RECORD):
            (folder / RECORD).write_text(json.dumps(record, indent=1), encoding="utf-8")


def check_unchanged(file: File, record: dict[str, dict[str, Any]], sha256: str) -> None:
    """Raise if a file whose authors give no sha256 differs from the last download."""
    before = record.get(file.name, {}).get("sha256")
    if before not in (None, sha256) and not file.has_checksum:
        fix = f"remove {RECORD} if the authors have replaced it"
        raise download_error(file.name, f"sha256 {sha256}", f"{before}, as last time", fix)


def read_record(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the record of a folder; nothing if there is none or it cannot be read."""
    try:
        found = parse_json((folder / RECORD).read_text(encoding="utf-8")) if (folder / RECORD).is_file() else {}
        return {
            str(name): {**facts, "members": list(map(str, facts.get("members", [])))} for name, facts in found.items()
        }
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
