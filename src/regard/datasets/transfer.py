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

from regard.datasets.bounds import get_bound
from regard.datasets.connections import PIECE, Answer
from regard.datasets.files import File
from regard.datasets.redirects import build_opener
from regard.errors import RegardError, format_message

DOWNLOAD = get_bound("download", "bytes")
HEADER = get_bound("download", "digits")

CUT = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError)
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
ByteCallback = Callable[[int, int | None], None]  # is told the bytes so far, and of how many


REDIRECT_FIX = "look for it there with a browser, or give another --mirror"


class DownloadError(RegardError, OSError):
    """A file could not be had, or is not what it should be."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to try."""

    tries: int = 5  # in a row that bring less than a piece
    pause: float = 1.0  # seconds after the first of them, then twice as long each time
    timeout: float = 30.0  # seconds without a byte


def download_file(
    file: File, target: Path, watch: ByteCallback = lambda done, total: None, patience: RetryPolicy | None = None
) -> str:
    """Puts `file` at `target` and returns its sha256. What was there already is checked, not fetched again.

    A download that is cut goes on where it stopped, now or in another call. It lies beside the target, under another
    name, until size and sum are right: whatever has the name of the target is whole.
    """
    with wrap_disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file():
            return verify_file(file, target)
        part = target.with_name(f".{target.name}.part")
        with lock_download(part):
            download_with_retries(file, part, watch, patience or RetryPolicy())
            total = verify_file(file, part)
            part.replace(target)
            get_tag_path(part).unlink(missing_ok=True)
    return total


def download_with_retries(file: File, part: Path, watch: ByteCallback, patience: RetryPolicy) -> None:
    """Asks until all is there, as long as pieces come: a try that brings less than one of them counts as none."""
    failures = 0
    while file.size is None or part.stat().st_size != file.size:
        before = part.stat().st_size
        try:
            receive_response(file, part, watch, patience.timeout)
            return
        except ValueError as error:  # an address that is none, here or where a server sends us
            raise DownloadError(
                format_message(file.name, f"{error}", f"an address, as {file.address}", REDIRECT_FIX)
            ) from None
        except CUT as error:
            if isinstance(error, urllib.error.HTTPError) and not should_retry(error, part):
                raise http_error(file, error) from None
            failures = 0 if part.stat().st_size - before >= PIECE else failures + 1
            if failures >= patience.tries:
                raise unreachable_error(file, part, error) from None
            time.sleep(patience.pause * 2 ** max(0, failures - 1))


def receive_response(file: File, part: Path, watch: ByteCallback, timeout: float) -> None:
    """One answer of the server, from where the part ends."""
    have = part.stat().st_size
    with build_opener(file).open(build_request(file, part, have), timeout=timeout) as answer:
        tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        have = find_resume_offset(answer, file, part, tag)
        length = parse_number(answer.headers.get("Content-Length"), file)
        total = None if length is None else have + length
        check_announced(file, total, part, have)
        write_tag(part, tag)
        with part.open("r+b") as output:
            output.truncate(have)
            output.seek(have)
            write_response(answer, output, file, total, watch)


def find_resume_offset(answer: http.client.HTTPResponse, file: File, part: Path, tag: str) -> int:
    """The byte that an answer begins with: the first, or the one behind what we have of the same file."""
    if answer.status == http.client.OK:
        return 0
    if answer.status != http.client.PARTIAL_CONTENT:
        reason = f"{answer.status} {answer.reason}"
        raise DownloadError(format_message(file.name, reason, f"the file at {file.address}", REDIRECT_FIX))
    have, known = part.stat().st_size, read_tag(part)
    if parse_range_start(answer, file) != have or (have and known and clean_tag(tag) != known):
        os.truncate(part, 0)  # a part of another file, or another part: all of it is asked for again
        raise http.client.HTTPException("another part than was asked for")
    return have


def write_response(answer: Answer, output: BinaryIO, file: File, total: int | None, watch: ByteCallback) -> None:
    """What the server sends, onto the disk as it comes."""
    done, most = output.tell(), file.size if file.size is not None else DOWNLOAD
    for chunk in answer.pieces():
        done += len(chunk)
        if done > most:
            raise size_error(file, f"more than {most} bytes")
        output.write(chunk)
        output.flush()
        watch(done, total if total is not None else file.size)
    if total is not None and done < total:
        raise http.client.IncompleteRead(b"", total - done)
    os.fsync(output.fileno())


def build_request(file: File, part: Path, have: int) -> urllib.request.Request:
    """Asks for the rest, but only if it is still the same file, as its tag or our sum tells."""
    request = urllib.request.Request(file.address, headers={"User-Agent": "regard", "Accept-Encoding": "identity"})
    tag = read_tag(part)
    if have and (tag or file.sha256):
        request.add_header("Range", f"bytes={have}-")
        if tag and not tag.startswith("W/"):
            request.add_header("If-Range", tag)
    return request


def parse_range_start(answer: http.client.HTTPResponse, file: File) -> int | None:
    """The first byte of a partial answer, from `Content-Range: bytes 100-199/200`."""
    return parse_number((answer.headers.get("Content-Range") or "").removeprefix("bytes ").partition("-")[0], file)


def parse_number(text: str | None, file: File) -> int | None:
    """A number in the head of an answer; none where it is no number."""
    if not text or not text.isdecimal():
        return None
    if len(text) > HEADER:
        raise size_error(file, f"a number of {len(text)} digits")
    return int(text)


def should_retry(error: urllib.error.HTTPError, part: Path) -> bool:
    """Busy servers recover. One that has no such range has another file now, or there is no more of it."""
    if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and part.stat().st_size:
        os.truncate(part, 0)
        return True
    return error.code >= 500 or error.code == http.client.TOO_MANY_REQUESTS


def check_announced(file: File, total: int | None, part: Path, have: int) -> None:
    """Raises before anything is loaded that could not be right, or has no room."""
    if total is not None and (total != file.size if file.size is not None else total > DOWNLOAD):
        raise size_error(file, f"{total} bytes")
    wanted = (total if total is not None else file.size or 0) - have
    if wanted > shutil.disk_usage(part.parent).free:
        raise disk_full_error(part.parent)


def verify_file(file: File, path: Path) -> str:
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
        raise DownloadError(
            format_message(file.name, got, expected, "try again, or another --mirror; nothing was kept")
        )
    raise DownloadError(format_message(str(path), got, expected, "move it away and repeat"))


@contextmanager
def lock_download(part: Path) -> Iterator[None]:
    """Two at once would write into each other's file."""
    import fcntl  # not on Windows

    if part.exists() and not part.is_file():
        raise DownloadError(
            format_message(str(part), "no plain file", "a place for the download", "move it away and repeat")
        )
    with part.open("ab") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fix = "wait for the other regard data get"
            raise DownloadError(format_message(part.name, "a download that is under way", "none", fix)) from None
        yield


@contextmanager
def wrap_disk_errors(place: Path) -> Iterator[None]:
    """Puts a failure of the disk in one sentence; what was loaded stays for the next time."""
    try:
        yield
    except DownloadError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL:
            raise disk_full_error(place.parent) from None
        fix = "check the path and its permissions"
        raise DownloadError(
            format_message(place.name, f"'{error.strerror or error}'", f"{place} to be writable", fix)
        ) from None


def get_tag_path(part: Path) -> Path:
    return part.with_suffix(".tag")


def write_tag(part: Path, tag: str) -> None:
    get_tag_path(part).write_text(clean_tag(tag), encoding="utf-8")


def read_tag(part: Path) -> str:
    """The tag of what we have a part of; nothing where it had none."""
    tag = get_tag_path(part)
    return clean_tag(tag.read_text(encoding="utf-8", errors="replace")) if tag.is_file() else ""


def clean_tag(tag: str) -> str:
    """A tag that can be sent back: one that is long or has odd characters is none."""
    return tag if len(tag) <= 200 and tag.isascii() and tag.isprintable() else ""


def disk_full_error(folder: Path) -> DownloadError:
    fix = "free some space and repeat; what was loaded is kept"
    return DownloadError(format_message("disk", "no space left", f"room in {folder}", fix))


def size_error(file: File, got: str) -> DownloadError:
    fix = "the authors may have replaced it: give another --mirror, or a folder of your own"
    expected = f"{file.size} bytes" if file.size is not None else f"at most {DOWNLOAD} bytes"
    return DownloadError(format_message(file.name, got, f"{expected} from {file.address}", fix))


def http_error(file: File, error: urllib.error.HTTPError) -> DownloadError:
    reason = f"{error.code} {' '.join(str(error.reason).split())}"
    return DownloadError(format_message(file.name, reason, f"an answer of {file.address}", REDIRECT_FIX))


def unreachable_error(file: File, part: Path, error: Exception) -> DownloadError:
    reason = str(getattr(error, "reason", None) or error) or type(error).__name__
    fix = f"check the connection and repeat; {part.stat().st_size} bytes are kept"
    return DownloadError(format_message(file.name, reason, f"all of {file.address}", fix))
