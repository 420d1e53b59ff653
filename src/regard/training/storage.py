"""Writing so that a file is either whole or not there: to a new name, forced to the disk, then renamed."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from regard.bounds import parse_json
from regard.errors import RegardError, sentence

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
DELETING = ".deleting-"
READABLE = 2**24  # bytes: what a run folder says about itself is never longer


class StorageError(RegardError, OSError):
    """The disk would not take or give something."""


@contextmanager
def storing(what: str, place: Path) -> Iterator[None]:
    """Puts a failure of the disk in one sentence."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        if error.errno in FULL:
            fix = "free some space and go on; what was saved before is whole"
            raise StorageError(sentence(what, "no space left on the disk", f"room in {place}", fix)) from error
        got = error.strerror or str(error)
        fix = "check the path and its permissions"
        raise StorageError(sentence(what, f"'{got}'", f"{place} to be writable", fix)) from error


def write(path: Path, content: bytes) -> None:
    """Writes a new file and forces it to the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace(path: Path, content: bytes) -> None:
    """Writes a file that others may read at any moment: they see the old or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.writing")
    try:
        write(temporary, content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    settle(path.parent)


def replace_by_copy(path: Path, source: Path) -> None:
    """Like `replace`, with the content of `source`; costs no space where the file system has links."""
    temporary = path.with_name(f".{path.name}.writing")
    temporary.unlink(missing_ok=True)
    try:
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    settle(path.parent)


def being_made(folder: Path) -> Path:
    """The name that a folder has until it is complete."""
    return folder.with_name(f".{folder.name}.writing")


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """The name of a folder to make and fill, which becomes `folder` when it is complete; otherwise nothing is left."""
    temporary = being_made(folder)
    shutil.rmtree(temporary, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield temporary
        settle(temporary)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    settle(folder.parent)


def remove(folder: Path) -> None:
    """Deletes a folder so that it is whole or not there: its name goes at once, then what it held."""
    doomed = folder.with_name(f"{DELETING}{folder.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    folder.rename(doomed)
    settle(folder.parent)
    shutil.rmtree(doomed)


def open_regular(path: Path, flags: int, buffering: int = -1) -> IO[bytes]:
    """Opens a file. A pipe or a device is an OSError, because reading or opening it might never end."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(handle, "r+b" if flags & os.O_RDWR else "rb", buffering)


def read_bytes(path: Path) -> bytes:
    """Reads a small file."""
    with open_regular(path, os.O_RDONLY) as file:
        content = file.read(READABLE + 1)
    if len(content) > READABLE:
        raise ValueError(f"longer than {READABLE:,} bytes")
    return content


def read_text(path: Path) -> str:
    """Reads a small file of text; OSError or ValueError where it is none."""
    return read_bytes(path).decode("utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """Reads a small file that holds a JSON object; OSError or ValueError where it does not."""
    content = parse_json(read_text(path))
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


def settle(folder: Path) -> None:
    """Forces the names in a folder to the disk: a rename is only durable after this."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits until no other process is here. The system gives the lock back when a process dies."""
    import fcntl  # not on Windows

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
