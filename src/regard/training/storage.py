"""Write files that are either whole or not there: to a new name, forced to the disk, then renamed."""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import RegardError, format_message

DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
DELETING_PREFIX = ".deleting-"


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
    """Write a new file and force it to the disk."""
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
def lock_file(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Wait until no other process is here, or raise an OSError. The system gives the lock back when a process dies."""
    import fcntl  # not on Windows

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
