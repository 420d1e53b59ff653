"""One file from its address to the disk: in pieces that are kept, whole only when size and sum are right."""

import errno
import hashlib
import http.client
import os
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from regard.bounds import most
from regard.datasets.connections import PIECE, Answer
from regard.datasets.files import File
from regard.datasets.redirects import opener
from regard.errors import RegardError, sentence

DOWNLOAD = most("download", "bytes")
HEADER = most("download", "digits")

CUT = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError)
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
WATCH = Callable[[int, int | None], None]  # is told the bytes so far, and of how many


REDIRECT_FIX = "look for it there with a browser, or give another --mirror"


class FetchError(RegardError, OSError):
    """A file could not be had, or is not what it should be."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to try."""

    tries: int = 5  # in a row that bring less than a piece
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
    """Asks until all is there, as long as pieces come: a try that brings less than one of them counts as none."""
    failures = 0
    while file.size is None or part.stat().st_size != file.size:
        before = part.stat().st_size
        try:
            receive(file, part, watch, patience.timeout)
            return
        except ValueError as error:  # an address that is none, here or where a server sends us
            raise FetchError(sentence(file.name, f"{error}", f"an address, as {file.address}", REDIRECT_FIX)) from None
        except CUT as error:
            if isinstance(error, urllib.error.HTTPError) and not worth_another_try(error, part):
                raise refused(file, error) from None
            failures = 0 if part.stat().st_size - before >= PIECE else failures + 1
            if failures >= patience.tries:
                raise unreachable(file, part, error) from None
            time.sleep(patience.pause * 2 ** max(0, failures - 1))


def receive(file: File, part: Path, watch: WATCH, timeout: float) -> None:
    """One answer of the server, from where the part ends."""
    have = part.stat().st_size
    with opener(file).open(request_for(file, part, have), timeout=timeout) as answer:
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        have = goes_on_at(answer, file, part, tag)
        length = whole(answer.headers.get("Content-Length"), file)
        total = None if length is None else have + length
        check_announced(file, total, part, have)
        remember_tag(part, tag)
        with part.open("r+b") as output:
            output.truncate(have)
            output.seek(have)
            poured(answer, output, file, total, watch)


def goes_on_at(answer: http.client.HTTPResponse, file: File, part: Path, tag: str) -> int:
    """The byte that an answer begins with: the first, or the one behind what we have of the same file."""
    if answer.status == http.client.OK:
        return 0
    if answer.status != http.client.PARTIAL_CONTENT:
        reason = f"{answer.status} {answer.reason}"
        raise FetchError(sentence(file.name, reason, f"the file at {file.address}", REDIRECT_FIX))
    have, known = part.stat().st_size, known_tag(part)
    if starts_at(answer, file) != have or (have and known and kept_as(tag) != known):
        os.truncate(part, 0)  # a part of another file, or another part: all of it is asked for again
        raise http.client.HTTPException("another part than was asked for")
    return have


def poured(answer: Answer, output: BinaryIO, file: File, total: int | None, watch: WATCH) -> None:
    """What the server sends, onto the disk as it comes."""
    done, most = output.tell(), file.size if file.size is not None else DOWNLOAD
    for chunk in answer.pieces():
        done += len(chunk)
        if done > most:
            raise wrong_size(file, f"more than {most} bytes")
        output.write(chunk)
        output.flush()
        watch(done, total if total is not None else file.size)
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)
    os.fsync(output.fileno())


def request_for(file: File, part: Path, have: int) -> urllib.request.Request:
    """Asks for the rest, but only if it is still the same file, as its tag or our sum tells."""
    request = urllib.request.Request(file.address, headers={"User-Agent": "regard", "Accept-Encoding": "identity"})
    tag = known_tag(part)
    if have and (tag or file.sha256):
        request.add_header("Range", f"bytes={have}-")
        if tag and not tag.startswith("W/"):
            request.add_header("If-Range", tag)
    return request


def starts_at(answer: http.client.HTTPResponse, file: File) -> int | None:
    """The first byte of a partial answer, from `Content-Range: bytes 100-199/200`."""
    return whole((answer.headers.get("Content-Range") or "").removeprefix("bytes ").partition("-")[0], file)


def whole(text: str | None, file: File) -> int | None:
    """A number in the head of an answer; none where it is no number."""
    if not text or not text.isdecimal():
        return None
    if len(text) > HEADER:
        raise wrong_size(file, f"a number of {len(text)} digits")
    return int(text)


def worth_another_try(error: urllib.error.HTTPError, part: Path) -> bool:
    """Busy servers recover. One that has no such range has another file now, or there is no more of it."""
    if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and part.stat().st_size:
        os.truncate(part, 0)
        return True
    return error.code >= 500 or error.code == http.client.TOO_MANY_REQUESTS


def check_announced(file: File, total: int | None, part: Path, have: int) -> None:
    """Raises before anything is loaded that could not be right, or has no room."""
    if total is not None and (total != file.size if file.size is not None else total > DOWNLOAD):
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

    if part.exists() and not part.is_file():
        raise FetchError(sentence(str(part), "no plain file", "a place for the download", "move it away and repeat"))
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
        raise FetchError(sentence(place.name, f"'{error.strerror or error}'", f"{place} to be writable", fix)) from None


def tag_of(part: Path) -> Path:
    return part.with_suffix(".tag")


def remember_tag(part: Path, tag: str) -> None:
    tag_of(part).write_text(kept_as(tag), encoding="utf-8")


def known_tag(part: Path) -> str:
    """The tag of what we have a part of; nothing where it had none."""
    tag = tag_of(part)
    return kept_as(tag.read_text(encoding="utf-8", errors="replace")) if tag.is_file() else ""


def kept_as(tag: str) -> str:
    """A tag that can be sent back: one that is long or has odd characters is none."""
    return tag if len(tag) <= 200 and tag.isascii() and tag.isprintable() else ""


def no_room(folder: Path) -> FetchError:
    fix = "free some space and repeat; what was loaded is kept"
    return FetchError(sentence("disk", "no space left", f"room in {folder}", fix))


def wrong_size(file: File, got: str) -> FetchError:
    fix = "the authors may have replaced it: give another --mirror, or a folder of your own"
    expected = f"{file.size} bytes" if file.size is not None else f"at most {DOWNLOAD} bytes"
    return FetchError(sentence(file.name, got, f"{expected} from {file.address}", fix))


def refused(file: File, error: urllib.error.HTTPError) -> FetchError:
    reason = f"{error.code} {' '.join(str(error.reason).split())}"
    return FetchError(sentence(file.name, reason, f"an answer of {file.address}", REDIRECT_FIX))


def unreachable(file: File, part: Path, error: Exception) -> FetchError:
    reason = str(getattr(error, "reason", None) or error) or type(error).__name__
    fix = f"check the connection and repeat; {part.stat().st_size} bytes are kept"
    return FetchError(sentence(file.name, reason, f"all of {file.address}", fix))
