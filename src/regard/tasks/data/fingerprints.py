"""Hashes of data, so that a run goes on with the data that it began with."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from regard.datasets.plain_files import read_text
from regard.datasets.text import shorten
from regard.errors import InputError, wrong

FINGERPRINT = "data.txt"


def digest(parts: Iterable[bytes]) -> str:
    """Return a short hash of the content.

    >>> digest([b"a", b"b"]) == digest([b"ab"]), digest([b"a"]) == digest([b"b"])
    (True, False)
    """
    content = hashlib.blake2b(digest_size=8)
    for part in parts:
        content.update(part)
    return content.hexdigest()


def save_fingerprint(folder: Path, now: str) -> None:
    """Write the fingerprint of the data to a run folder."""
    (folder / FINGERPRINT).write_text(f"{now}\n", encoding="utf-8")


def check_fingerprint(what: str, now: str, run: Path) -> None:
    """Raise if a run would go on with other data than it began with; a run without a fingerprint is trusted."""
    before = read_fingerprint(run) or now
    if before != now:
        fix = f"bring back the {what}, the settings and the version of regard, or start a new run"
        raise wrong("data", f"{what} whose fingerprint is {now}", f"{before} as in {run}", fix)


def read_fingerprint(run: Path) -> str:
    """Return the fingerprint of a run's data; an empty text if it has none."""
    try:
        return shorten(read_text(run / FINGERPRINT).strip() or "nothing", 40)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        got, fix = f"{run / FINGERPRINT} ({shorten(error)})", "restore the file from a copy"
        raise wrong("data", got, "a fingerprint that regard saved", fix) from None


def check_held_out(what: str, now: str, run: Path) -> None:
    """Raise if the data were changed, or are split in another way, since a run was trained on them."""
    try:
        check_fingerprint(what, now, run)
    except InputError:
        got = f"{what} that are not those that {run} was trained on, or are cut otherwise"
        fix = "bring them back with the version of regard, or name other data to measure on"
        raise wrong("data", got, "parts of which none was trained on", fix) from None
