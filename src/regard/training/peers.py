"""What processes that train together owe each other when one of them fails: its reason, and an end.

A process that waits for another in a collective cannot be told anything; it notices that the other is gone. So whoever
fails first writes down why, in the store that all share, and ends. The others, cut off, look there.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch._C._distributed_c10d import Store
from torch.distributed import DistBackendError, DistNetworkError, DistStoreError

from regard.bounds import parse_json
from regard.errors import RegardError, sentence

KEY = "failure"
DONE = "done"
PATIENCE = 60.0  # seconds that the first to finish waits for the others
CUT_OFF = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed", "NCCL error")


class ProcessError(RegardError, RuntimeError):
    """A process died and was not to be restarted."""


@contextmanager
def sharing_failures(store: Store, rank: int) -> Iterator[None]:
    """Tells the others about an error in here; what only came of another's end is raised as the other's error."""
    try:
        yield
    except Exception as error:
        if not is_cut_off(error):
            write_down(store, error, rank)
            raise
        raise find_reason(store) from error


def leave_together(store: Store, world: int) -> None:
    """Waits until all processes are through: one that goes early may take with it what it sent last."""
    deadline = time.monotonic() + PATIENCE
    try:
        store.add(DONE, 1)
        while store.add(DONE, 0) < world and time.monotonic() < deadline:
            time.sleep(0.02)
    except RuntimeError:
        return  # the process that kept the store has gone


def is_cut_off(error: BaseException | None) -> bool:
    """Whether an error says that another process is gone."""
    if error is None or (isinstance(error, RegardError) and error.relayed):
        return False
    kinds = isinstance(error, DistBackendError | DistNetworkError | DistStoreError)
    texts = isinstance(error, RuntimeError | OSError) and any(text in str(error) for text in CUT_OFF)
    return kinds or texts or is_cut_off(error.__cause__)


def write_down(store: Store, error: Exception, rank: int) -> None:
    """Leaves the reason where the others will look, unless there is one."""
    try:
        if not store.check([KEY]):
            store.set(KEY, described(error, rank))
    except RuntimeError:
        return  # the store is gone, and with it whoever could look


def find_reason(store: Store) -> RegardError:
    """The error with which another process ended, or that nobody knows it."""
    try:
        text = store.get(KEY).decode() if store.check([KEY]) else ""
    except RuntimeError:
        text = ""  # the process that kept the store is the one that died
    error = restored(text)
    error.relayed = True
    return error


def described(error: Exception, rank: int) -> str:
    """An error as text that another process can make it of again."""
    return json.dumps({"kind": type(error).__name__, "text": str(error), "rank": rank})


def restored(text: str) -> RegardError:
    """The inverse of `described`; an error that is not ours becomes a sentence about it."""
    fix = "look at the output of that process; regard resume goes on from the last checkpoint"
    if not text:
        return ProcessError(sentence("processes", "one that ended without a word", "all to finish", fix))
    values = parse_json(text)
    kind = kinds_of(RegardError).get(values["kind"])
    if kind is not None:
        return kind(values["text"])
    got = f"{values['kind']} ({values['text']}) in process {values['rank']}"
    return ProcessError(sentence("processes", got, "all to finish", fix))


def kinds_of(base: type[RegardError]) -> dict[str, type[RegardError]]:
    """A class and all that are made from it, by name."""
    found = {base.__name__: base}
    for kind in base.__subclasses__():
        found |= kinds_of(kind)
    return found


def leave_report(report: Path, error: RegardError) -> None:
    """Writes an error to a file that the launcher reads, unless another process was first."""
    try:
        with report.open("x", encoding="utf-8") as file:
            file.write(described(error, 0))
    except FileExistsError:
        return


def read_report(report: Path) -> RegardError | None:
    """The error that ended the processes, if one wrote it down."""
    try:
        return restored(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
