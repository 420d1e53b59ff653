"""Writing so that a file is either whole or not there: to a new name, forced to the disk, then renamed."""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import RegardError, sentence

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


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


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """The name of a folder to make and fill, which becomes `folder` when it is complete; otherwise nothing is left."""
    temporary = folder.with_name(f".{folder.name}.writing")
    shutil.rmtree(temporary, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield temporary
        settle(temporary)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    settle(folder.parent)


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
