"""Share the reason of a failure among processes that train together.

A process that waits for another in a collective only notices that the other is gone. So the process that fails first
writes the reason to the store that all share, and ends. The others are disconnected and read it there.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch._C._distributed_c10d import Store
from torch.distributed import DistBackendError, DistNetworkError, DistStoreError

from regard.datasets.bounds import parse_json
from regard.errors import RegardError, format_message

KEY = "failure"
DONE = "done"
PATIENCE = 60.0  # seconds that the first to finish waits for the others
DISCONNECTED = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed", "NCCL error")


class ProcessError(RegardError, RuntimeError):
    """A process died and was not to be restarted."""


@contextmanager
def share_failures(store: Store, rank: int) -> Iterator[None]:
    """Pass an error in the block to the other processes; raise one that another process caused as its error."""
    try:
        yield
    except Exception as error:
        if not is_disconnected(error):
            write_failure(store, error, rank)
            raise
        raise read_failure(store) from error


def leave_together(store: Store, world: int) -> None:
    """Wait until all processes are through: what one sent last may be lost if it leaves early."""
    deadline = time.monotonic() + PATIENCE
    try:
        store.add(DONE, 1)
        while store.add(DONE, 0) < world and time.monotonic() < deadline:
            time.sleep(0.02)
    except RuntimeError:
        return  # the process that kept the store has gone


def is_disconnected(error: BaseException | None) -> bool:
    """Return whether an error says that another process is gone."""
    if error is None or (isinstance(error, RegardError) and error.relayed):
        return False
    kinds = isinstance(error, DistBackendError | DistNetworkError | DistStoreError)
    texts = isinstance(error, RuntimeError | OSError) and any(text in str(error) for text in DISCONNECTED)
    return kinds or texts or is_disconnected(error.__cause__)


def write_failure(store: Store, error: Exception, rank: int) -> None:
    """Write the reason to the store that all processes share, unless there is one."""
    try:
        if not store.check([KEY]):
            store.set(KEY, serialize_error(error, rank))
    except RuntimeError:
        return  # the store is gone, and with it the processes that could read it


def read_failure(store: Store) -> RegardError:
    """Return the error with which another process ended, or that nobody knows it."""
    try:
        text = store.get(KEY).decode() if store.check([KEY]) else ""
    except RuntimeError:
        text = ""  # the process that kept the store is the one that died
    error = deserialize_error(text)
    error.relayed = True
    return error


def serialize_error(error: Exception, rank: int) -> str:
    """Return an error as text from which another process can rebuild it."""
    return json.dumps({"kind": type(error).__name__, "text": str(error), "rank": rank})


def deserialize_error(text: str) -> RegardError:
    """Return the inverse of `serialize_error`; an error that is not ours becomes a sentence about it."""
    fix = "look at the output of that process; regard resume goes on from the last checkpoint"
    if not text:
        return ProcessError(format_message("processes", "one that ended without a word", "all to finish", fix))
    values = parse_json(text)
    kind = collect_subclasses(RegardError).get(values["kind"])
    if kind is not None:
        return kind(values["text"])
    got = f"{values['kind']} ({values['text']}) in process {values['rank']}"
    return ProcessError(format_message("processes", got, "all to finish", fix))


def collect_subclasses(base: type[RegardError]) -> dict[str, type[RegardError]]:
    """Return a class and all that are made from it, by name."""
    found = {base.__name__: base}
    for kind in base.__subclasses__():
        found |= collect_subclasses(kind)
    return found


def write_report(report: Path, error: RegardError) -> None:
    """Write an error to a file that the launcher reads, unless another process was first."""
    try:
        with report.open("x", encoding="utf-8") as file:
            file.write(serialize_error(error, 0))
    except FileExistsError:
        return


def read_report(report: Path) -> RegardError | None:
    """Return the error that ended the processes, if one wrote it down."""
    try:
        return deserialize_error(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
