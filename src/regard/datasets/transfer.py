"""Download one file: pieces are kept until size and sha256 are right, then the file gets its name."""

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
from regard.datasets.connections import PIECE, TimedResponse
from regard.datasets.files import File
from regard.datasets.redirects import build_opener
from regard.errors import RegardError, format_message

DOWNLOAD = get_bound("download", "bytes")
HEADER = get_bound("download", "digits")

CUT = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError)
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
ByteCallback = Callable[[int, int | None], None]  # gets the bytes so far, and the total if it is known
REDIRECT_FIX = "look for it there with a browser, or give another --mirror"


class DownloadError(RegardError, OSError):
    """A file that could not be downloaded, or is not what it should be."""


def download_error(name: str, got: object, expected: str, fix: str) -> DownloadError:
    """Return a download error in the wording of all messages, to be raised by the caller."""
    return DownloadError(format_message(name, got, expected, fix))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to try a download."""

    tries: int = 5  # in a row that bring less than a piece
    pause: float = 1.0  # seconds after the first of them, then twice as long each time
    timeout: float = 30.0  # seconds without a byte


def download_file(
    file: File, target: Path, watch: ByteCallback = lambda done, total: None, patience: RetryPolicy | None = None
) -> str:
    """Download `file` to `target` and return its sha256. A file that is there is checked, not downloaded again.

    An interrupted download continues where it stopped, now or in another call. It has another name beside the target
    until size and sha256 are right: whatever has the name of the target is whole.
    """
    with wrap_disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_file():
            return verify_file(file, target)
        part = target.with_name(f".{target.name}.part")
        with lock_download(part):
            download_with_retries(file, part, watch, patience or RetryPolicy())
            sha256 = verify_file(file, part)
            part.replace(target)
            get_tag_path(part).unlink(missing_ok=True)
    return sha256


def download_with_retries(file: File, part: Path, watch: ByteCallback, patience: RetryPolicy) -> None:
    """Send requests until the file is complete, as long as each brings at least a piece."""
    failures = 0
    while file.size is None or part.stat().st_size != file.size:
        before = part.stat().st_size
        try:
            receive_response(file, part, watch, patience.timeout)
            return
        except ValueError as error:  # a bad address: that of the file, or one that a server redirects to
            raise download_error(file.name, f"{error}", f"an address, as {file.address}", REDIRECT_FIX) from None
        except CUT as error:
            if isinstance(error, urllib.error.HTTPError) and not should_retry(error, part):
                raise http_error(file, error) from None
            failures = 0 if part.stat().st_size - before >= PIECE else failures + 1
            if failures >= patience.tries:
                raise unreachable_error(file, part, error) from None
            time.sleep(patience.pause * 2 ** max(0, failures - 1))


def receive_response(file: File, part: Path, watch: ByteCallback, timeout: float) -> None:
    """Send one request for what is missing and append the answer to the part."""
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
    """Return the byte that an answer begins with: 0, or the length of the part if it is of the same file.

    A part that does not fit is emptied; the error that is raised then leads to another request.
    """
    if answer.status == http.client.OK:
        return 0
    if answer.status != http.client.PARTIAL_CONTENT:
        reason = f"{answer.status} {answer.reason}"
        raise download_error(file.name, reason, f"the file at {file.address}", REDIRECT_FIX)
    have, known = part.stat().st_size, read_tag(part)
    if parse_range_start(answer, file) != have or (have and known and clean_tag(tag) != known):
        os.truncate(part, 0)  # of another file, or another range
        raise http.client.HTTPException("another part than was asked for")
    return have


def write_response(answer: TimedResponse, output: BinaryIO, file: File, total: int | None, watch: ByteCallback) -> None:
    """Write what the server sends to the disk as it arrives."""
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
    """Return a request for the rest of a file, if its tag or sha256 can tell that it is still the same file."""
    request = urllib.request.Request(file.address, headers={"User-Agent": "regard", "Accept-Encoding": "identity"})
    tag = read_tag(part)
    if have and (tag or file.sha256):
        request.add_header("Range", f"bytes={have}-")
        if tag and not tag.startswith("W/"):
            request.add_header("If-Range", tag)
    return request


def parse_range_start(answer: http.client.HTTPResponse, file: File) -> int | None:
    """Return the first byte of a partial answer, from `Content-Range: bytes 100-199/200`."""
    return parse_number((answer.headers.get("Content-Range") or "").removeprefix("bytes ").partition("-")[0], file)


def parse_number(text: str | None, file: File) -> int | None:
    """Return a number from a header of an answer; None if it is not a number."""
    if not text or not text.isdecimal():
        return None
    if len(text) > HEADER:
        raise size_error(file, f"a number of {len(text)} digits")
    return int(text)


def should_retry(error: urllib.error.HTTPError, part: Path) -> bool:
    """Return whether another request may help: busy servers recover; without this range, the file is loaded anew."""
    if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and part.stat().st_size:
        os.truncate(part, 0)
        return True
    return error.code >= 500 or error.code == http.client.TOO_MANY_REQUESTS


def check_announced(file: File, total: int | None, part: Path, have: int) -> None:
    """Raise before anything is downloaded if its size is wrong or the disk has no room."""
    if total is not None and (total != file.size if file.size is not None else total > DOWNLOAD):
        raise size_error(file, f"{total} bytes")
    wanted = (total if total is not None else file.size or 0) - have
    if wanted > shutil.disk_usage(part.parent).free:
        raise disk_full_error(part.parent)


def verify_file(file: File, path: Path) -> str:
    """Return the sha256 of a file if it is the one we know; a part that is wrong is removed, a whole file is not."""
    size, sha256 = path.stat().st_size, compute_sha256(path)
    if (file.size is None or size == file.size) and file.sha256 in (None, sha256):
        return sha256
    got = f"{size} bytes with sha256 {sha256}"
    expected = f"{file.size if file.size is not None else size} bytes with {file.sha256}"
    if path.name.endswith(".part"):
        path.unlink()
        raise download_error(file.name, got, expected, "try again, or another --mirror; nothing was kept")
    raise download_error(str(path), got, expected, "move it away and repeat")


def compute_sha256(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def lock_download(part: Path) -> Iterator[None]:
    """Hold the lock of a part: two processes would write into each other's file."""
    import fcntl  # not on Windows

    if part.exists() and not part.is_file():
        got = "something that is not a plain file"
        raise download_error(str(part), got, "a place for the download", "move it away and repeat")
    with part.open("ab") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fix = "wait for the other regard data get"
            raise download_error(part.name, "a download that is under way", "none", fix) from None
        yield


@contextmanager
def wrap_disk_errors(place: Path) -> Iterator[None]:
    """Turn an error of the disk into one sentence; what was downloaded is kept for the next time."""
    try:
        yield
    except DownloadError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL:
            raise disk_full_error(place.parent) from None
        fix = "check the path and its permissions"
        raise download_error(place.name, f"'{error.strerror or error}'", f"{place} to be writable", fix) from None


def get_tag_path(part: Path) -> Path:
    """Return the path of the file that keeps the tag of a part."""
    return part.with_suffix(".tag")


def write_tag(part: Path, tag: str) -> None:
    """Keep the tag (ETag or date) by which the server names this version of a file."""
    get_tag_path(part).write_text(clean_tag(tag), encoding="utf-8")


def read_tag(part: Path) -> str:
    """Return the tag of a part; empty if the server gave none."""
    tag = get_tag_path(part)
    return clean_tag(tag.read_text(encoding="utf-8", errors="replace")) if tag.is_file() else ""


def clean_tag(tag: str) -> str:
    """Return a tag that can be sent back; empty if it is long or has unusual characters."""
    return tag if len(tag) <= 200 and tag.isascii() and tag.isprintable() else ""


def disk_full_error(folder: Path) -> DownloadError:
    """Return the error of a full disk."""
    fix = "free some space and repeat; what was loaded is kept"
    return download_error("disk", "no space left", f"room in {folder}", fix)


def size_error(file: File, got: str) -> DownloadError:
    """Return the error of a file whose size is not the expected one."""
    fix = "the authors may have replaced it: give another --mirror, or a folder of your own"
    expected = f"{file.size} bytes" if file.size is not None else f"at most {DOWNLOAD} bytes"
    return download_error(file.name, got, f"{expected} from {file.address}", fix)


def http_error(file: File, error: urllib.error.HTTPError) -> DownloadError:
    """Return the error of a server that does not give the file."""
    reason = f"{error.code} {' '.join(str(error.reason).split())}"
    return download_error(file.name, reason, f"an answer of {file.address}", REDIRECT_FIX)


def unreachable_error(file: File, part: Path, error: Exception) -> DownloadError:
    """Return the error of a download that was tried often enough."""
    reason = str(getattr(error, "reason", None) or error) or type(error).__name__
    fix = f"check the connection and repeat; {part.stat().st_size} bytes are kept"
    return download_error(file.name, reason, f"all of {file.address}", fix)
