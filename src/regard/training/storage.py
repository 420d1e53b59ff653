"""Write files that are either whole or not there: to a new name, forced to the disk, then renamed."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from regard.datasets.bounds import parse_json
from regard.errors import RegardError, format_message

DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
DELETING_PREFIX = ".deleting-"
MAX_BYTES = 2**24  # bytes: what a run folder says about itself is never longer


class StorageError(RegardError, OSError):
    """The disk would not take or give something."""


@contextmanager
def wrap_storage_errors(what: str, place: Path) -> Iterator[None]:
    """Turn an error of the disk into one sentence."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL:
            fix = "free some space and go on; what was saved before is whole"
            raise StorageError(format_message(what, "no space left on the disk", f"room in {place}", fix)) from error
        got = error.strerror or str(error)
        fix = "check the path and its permissions"
        raise StorageError(format_message(what, f"'{got}'", f"{place} to be writable", fix)) from error


def write_file(path: Path, content: bytes) -> None:
    """Write a new file and forces it to the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file that others may read at any moment: they see the old or the new one, never a part."""
    with replace_atomically(path) as temporary:
        write_file(temporary, content)


def replace_file_by_copy(path: Path, source: Path) -> None:
    """Replace a file by a copy of `source`, which takes no space if the file system has links."""
    with replace_atomically(path) as temporary:
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Yield the path of a file to write, which takes the place of `path` at the end of the block."""
    temporary = get_temporary_path(path)
    temporary.unlink(missing_ok=True)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def get_temporary_path(path: Path) -> Path:
    """Return the name that a file or folder has until it is complete."""
    return path.with_name(f".{path.name}.writing")


@contextmanager
def create_atomically(folder: Path) -> Iterator[Path]:
    """Yield the path of a folder to make, which becomes `folder` at the end; nothing is left after an error."""
    temporary = get_temporary_path(folder)
    shutil.rmtree(temporary, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield temporary
        sync_folder(temporary)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    sync_folder(folder.parent)


def remove_folder(folder: Path) -> None:
    """Delete a folder so that it is whole or not there: its name goes at once, then what it held."""
    doomed = folder.with_name(f"{DELETING_PREFIX}{folder.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    sync_folder(folder.parent)
    shutil.rmtree(doomed)


def open_regular(path: Path, flags: int, buffering: int = -1) -> IO[bytes]:
    """Open a file. A pipe or a device is an OSError, because reading or opening it might never end."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(handle, "r+b" if flags & os.O_RDWR else "rb", buffering)


def read_bytes(path: Path) -> bytes:
    """Read a small file."""
    with open_regular(path, os.O_RDONLY) as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"longer than {MAX_BYTES:,} bytes")
    return content


def read_text(path: Path) -> str:
    """Read a small file of text; OSError or ValueError where it is none."""
    return read_bytes(path).decode("utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Read a small file that holds a JSON object; OSError or ValueError where it does not."""
    content = parse_json(read_text(path))
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk: a rename is only durable after this."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def compute_sha256(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Wait until no other process is here. The system gives the lock back when a process dies."""
    import fcntl  # not on Windows

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
