"""One file from its address to the disk: in pieces that are kept, whole only when size and sum are right."""

import errno
import hashlib
import http.client
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from regard.datasets.files import File
from regard.errors import RegardError, sentence

CHUNK = 2**16
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
WATCH = Callable[[int, int | None], None]  # is told the bytes so far, and of how many


class FetchError(RegardError, OSError):
    """A file could not be had, or is not what it should be."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to try."""

    tries: int = 5  # in a row that bring nothing new
    pause: float = 1.0  # seconds after the first of them, then twice as long each time
    timeout: float = 30.0  # seconds without a byte


def fetch(file: File, target: Path, watch: WATCH = lambda done, total: None, patience: Patience | None = None) -> str:
    """Puts `file` at `target` and returns its sha256. What was there already is checked, not fetched again.

    A download that is cut goes on where it stopped, now or in another call. It lies beside the target, under another
    name, until size and sum are right: whatever has the name of the target is whole.
    """
    with storing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file():
            return checked(file, target)
        part = target.with_name(f".{target.name}.part")
        with alone(part):
            complete(file, part, watch, patience or Patience())
            total = checked(file, part)
            part.replace(target)
            tag_of(part).unlink(missing_ok=True)
    return total


def complete(file: File, part: Path, watch: WATCH, patience: Patience) -> None:
    """Asks until all is there, as long as something new comes."""
    failures = 0
    while file.size is None or part.stat().st_size != file.size:
        before = part.stat().st_size
        try:
            receive(file, part, watch, patience.timeout)
            return
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            if isinstance(error, urllib.error.HTTPError) and not worth_another_try(error, part):
                raise refused(file, error) from None
            failures = 0 if part.stat().st_size > before else failures + 1
            if failures >= patience.tries:
                raise unreachable(file, part, error) from None
            time.sleep(patience.pause * 2 ** max(0, failures - 1))


def receive(file: File, part: Path, watch: WATCH, timeout: float) -> None:
    """One answer of the server, from where the part ends."""
    have = part.stat().st_size
    with urllib.request.urlopen(request_for(file, part, have), timeout=timeout) as answer:
        if answer.status != http.client.PARTIAL_CONTENT or starts_at(answer) != have:
            have = 0  # the server sends all of it, or another part than we have
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdecimal() else None
        check_announced(file, total, part, have)
        remember_tag(part, answer.headers.get("ETag") or answer.headers.get("Last-Modified") or "")
        with part.open("r+b") as output:
            output.truncate(have)
            output.seek(have)
            poured(answer, output, file, total, watch)


def poured(answer: http.client.HTTPResponse, output: BinaryIO, file: File, total: int | None, watch: WATCH) -> None:
    """What the server sends, onto the disk as it comes."""
    done = output.tell()
    while chunk := answer.read(CHUNK):
        done += len(chunk)
        if file.size is not None and done > file.size:
            raise wrong_size(file, f"more than {file.size} bytes")
        output.write(chunk)
        output.flush()
        watch(done, total if total is not None else file.size)
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)
    os.fsync(output.fileno())


def request_for(file: File, part: Path, have: int) -> urllib.request.Request:
    """Asks for the rest, but only if it is still the same file: then the whole would not fit the part."""
    request = urllib.request.Request(file.address, headers={"User-Agent": "regard", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
        tag = tag_of(part)
        if tag.is_file() and tag.read_text() and not tag.read_text().startswith("W/"):
            request.add_header("If-Range", tag.read_text())
    return request


def starts_at(answer: http.client.HTTPResponse) -> int | None:
    """The first byte of a partial answer, from `Content-Range: bytes 100-199/200`."""
    span = (answer.headers.get("Content-Range") or "").removeprefix("bytes ").partition("-")[0]
    return int(span) if span.isdecimal() else None


def worth_another_try(error: urllib.error.HTTPError, part: Path) -> bool:
    """Busy servers recover. One that has no such range has another file now, or there is no more of it."""
    if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and part.stat().st_size:
        os.truncate(part, 0)
        return True
    return error.code >= 500 or error.code == http.client.TOO_MANY_REQUESTS


def check_announced(file: File, total: int | None, part: Path, have: int) -> None:
    """Raises before anything is loaded that could not be right, or has no room."""
    if file.size is not None and total is not None and total != file.size:
        raise wrong_size(file, f"{total} bytes")
    wanted = (total if total is not None else file.size or 0) - have
    if wanted > shutil.disk_usage(part.parent).free:
        raise no_room(part.parent)


def checked(file: File, path: Path) -> str:
    """The sum of a file that is what it should be. A part that is not is removed; what has a name is left alone."""
    size = path.stat().st_size
    with path.open("rb") as content:
        total = hashlib.file_digest(content, "sha256").hexdigest()
    if (file.size is None or size == file.size) and file.sha256 in (None, total):
        return total
    got = f"{size} bytes with sha256 {total}"
    expected = f"{file.size if file.size is not None else size} bytes with {file.sha256}"
    if path.name.endswith(".part"):
        path.unlink()
        raise FetchError(sentence(file.name, got, expected, "try again, or another --mirror; nothing was kept"))
    raise FetchError(sentence(str(path), got, expected, "move it away and repeat"))


@contextmanager
def alone(part: Path) -> Iterator[None]:
    """Two at once would write into each other's file."""
    import fcntl  # not on Windows

    with part.open("ab") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fix = "wait for the other regard data get"
            raise FetchError(sentence(part.name, "a download that is under way", "none", fix)) from None
        yield


@contextmanager
def storing(place: Path) -> Iterator[None]:
    """Puts a failure of the disk in one sentence; what was loaded stays for the next time."""
    try:
        yield
    except FetchError:
        raise
    except OSError as error:
        if error.errno in FULL:
            raise no_room(place.parent) from None
        fix = "check the path and its permissions"
        raise FetchError(sentence(place.name, f"'{error.strerror}'", f"{place} to be writable", fix)) from None


def tag_of(part: Path) -> Path:
    return part.with_suffix(".tag")


def remember_tag(part: Path, tag: str) -> None:
    tag_of(part).write_text(tag)


def no_room(folder: Path) -> FetchError:
    fix = "free some space and repeat; what was loaded is kept"
    return FetchError(sentence("disk", "no space left", f"room in {folder}", fix))


def wrong_size(file: File, got: str) -> FetchError:
    fix = "the authors may have replaced it: give another --mirror, or a folder of your own"
    return FetchError(sentence(file.name, got, f"{file.size} bytes from {file.address}", fix))


def refused(file: File, error: urllib.error.HTTPError) -> FetchError:
    fix = "look for it there with a browser, or give another --mirror"
    return FetchError(sentence(file.name, f"{error.code} {error.reason}", f"an answer of {file.address}", fix))


def unreachable(file: File, part: Path, error: Exception) -> FetchError:
    reason = str(getattr(error, "reason", None) or error) or type(error).__name__
    fix = f"check the connection and repeat; {part.stat().st_size} bytes are kept"
    return FetchError(sentence(file.name, reason, f"all of {file.address}", fix))
