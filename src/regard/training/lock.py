"""One process at a time changes a run folder.

The lock is the system's (`flock`) on a file in the folder, so it ends with the process that has it, however that ends.
The file says who has it. If a file system has no such locks, what the file says decides.
"""

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from platform import node
from typing import IO, NamedTuple

from regard.datasets.bounds import parse_json
from regard.datasets.plain_files import open_regular
from regard.errors import InputError, wrong
from regard.training.storage import wrap_storage_errors

NAME = ".lock"
UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
A_MOMENT = 0.05  # seconds between having the lock and having written who has it


class Holder(NamedTuple):
    """The process that has the lock."""

    host: str
    process: int
    since: str
    boot: str  # tells two lives of one machine apart: process numbers begin again

    def __str__(self) -> str:
        return f"process {self.process} on {self.host} since {self.since}"


class Lock:
    """The right to change a run folder. Free until it is taken, and again when it is closed."""

    def __init__(self) -> None:
        self.path = Path(NAME)
        self.file: IO[bytes] | None = None

    def acquire(self, run: Path) -> list[str]:
        """Take the lock of a folder, or raise a sentence that names who has it; return what is worth a note."""
        self.path = run / NAME
        with wrap_storage_errors("lock", self.path):
            file = open_and_lock(run)
            before = read_holder(file)
            file.truncate(0)
            file.seek(0)
            file.write(json.dumps(describe_process()._asdict()).encode())
            file.flush()
        self.file = file
        gone = before is not None and before.host != node()
        return [f"taken over from {before}, which no longer has the lock"] if gone else []

    def follow(self, run: Path) -> bool:
        """Return whether the lock is that of a folder, which may have had another name when it was taken."""
        if self.file is None or not is_current(self.file, run / NAME):
            return False
        self.path = run / NAME
        return True

    def close(self) -> None:
        """Give the lock back; the folder then holds no trace of it."""
        if self.file is None:
            return
        if is_current(self.file, self.path):
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.file.close()
        self.file = None


@contextlib.contextmanager
def hold_lock(run: Path) -> Iterator[list[str]]:
    """Hold the lock of a folder while the block runs."""
    lock = Lock()
    try:
        yield lock.acquire(run)
    finally:
        lock.close()


def check_free(run: Path, name: Path | None = None) -> None:
    """Raise a sentence that names who has the lock of a folder, if anybody has; `name` is what it will be called."""
    try:
        file = open_regular(run / NAME, os.O_RDWR)
    except OSError:
        return  # there is no lock, or none that we could take: whoever needs it will say so
    with file:
        if not try_lock(file):
            raise in_use_error(name or run, read_holder(file, tries=3))


def open_and_lock(run: Path) -> IO[bytes]:
    """Return the lock file of a folder, locked; try again if it was removed between opening and locking."""
    while True:
        file = open_regular(run / NAME, os.O_RDWR | os.O_CREAT)
        if not try_lock(file):
            with file:
                raise in_use_error(run, read_holder(file, tries=3))
        if is_current(file, run / NAME):
            return file
        file.close()


def try_lock(file: IO[bytes]) -> bool:
    """Return whether nobody else has the lock; it is ours from now on, until the file is closed."""
    try:
        import fcntl
    except ImportError:  # Windows
        return is_abandoned(read_holder(file))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return is_abandoned(read_holder(file))
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def is_abandoned(holder: Holder | None) -> bool:
    """Return whether a process that wrote its name is certainly gone. Of another machine nothing is certain."""
    if holder is None:
        return True
    if holder.host != node():
        return False
    if holder.boot != read_boot_id():
        return True
    try:
        os.kill(holder.process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # alive, and somebody else's
    return False


def is_current(file: IO[bytes], path: Path) -> bool:
    """Return whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def read_holder(file: IO[bytes], tries: int = 1) -> Holder | None:
    """Return who wrote their name, if anybody did. A new holder may need a moment to write it."""
    for _ in range(tries):
        file.seek(0)
        try:
            values = parse_json(file.read(4096))
            return Holder(str(values["host"]), int(values["process"]), str(values["since"]), str(values["boot"]))
        except (ValueError, KeyError, TypeError):
            time.sleep(A_MOMENT if tries > 1 else 0)
    return None


def describe_process() -> Holder:
    """Return this process as a holder."""
    return Holder(node(), os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"), read_boot_id())


def read_boot_id() -> str:
    """Return what tells this start of the machine from the one before; nothing if the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def in_use_error(run: Path, holder: Holder | None) -> InputError:
    """Return the sentence for whoever comes second."""
    fix = "wait until that one has ended, or stop it"
    if holder and holder.host != node():
        fix += f"; if it is gone, remove {run / NAME}"
    who = str(holder) if holder else "another process"
    return wrong("run", f"{run}, which is in use by {who}", "a run that no other process works on", fix)
