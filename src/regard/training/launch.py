"""Several processes on this machine, without torchrun. With torchrun nothing of this is needed."""

import logging
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from torch.multiprocessing.spawn import ProcessExitedException

from regard.errors import RegardError, sentence
from regard.training.interrupt import Interrupt, listening
from regard.training.peers import ProcessError, leave_report, read_report

FAILED = 2  # how a process ends whose error is written down
PATIENCE = 5.0  # seconds in which the launcher notices that a process died


def launch(entry: Callable[..., None], *arguments: Any, processes: int, restarts: int = 0) -> bool:
    """Runs `entry(*arguments)` in each of `processes` new processes and waits for them; false: they were interrupted.

    If one dies, all are restarted, up to `restarts` times; `train` then goes on from its last checkpoint.
    `entry` must be a function that another process can import.
    """
    cores = os.cpu_count() or 1
    # Threads that compete for a core make small operations up to 200 times slower.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // processes)))
    quieten()
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        max_restarts=restarts,
        run_id=uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        start_method="spawn",
        monitor_interval=0.2,
    )
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "failure.json"
        return run_all(config, entry, arguments, report)


def run_all(config: LaunchConfig, entry: Callable[..., None], arguments: tuple[Any, ...], report: Path) -> bool:
    """Starts the processes and waits. The error that one of them wrote down is raised here, once."""
    try:
        answers = elastic_launch(config, work)(entry, arguments, report)
    except SignalException:
        return False  # Ctrl-C: the processes have saved and said how to go on
    except ChildFailedError as error:
        problem = read_report(report)
        if problem:
            raise problem from None
        rank, failure = error.get_first_failure()
        got = f"process {rank} ended by {failure.signal_name() if failure.exitcode < 0 else failure.exitcode}"
        fix = "look at its output above; regard resume goes on from the last checkpoint, with --restarts 1 by itself"
        raise ProcessError(sentence("processes", got, "all to finish", fix)) from None
    problem = next((answer for answer in answers.values() if answer), None)
    if problem:
        raise problem
    return True


def quieten() -> None:
    """Leaves one line of what torch logs about a process that was killed; where in torch that was seen is no news.

    Nothing is left of a process whose error is told in our own words.
    """

    def brief(record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], ProcessExitedException):
            told = record.exc_info[1].exit_code == FAILED
            record.exc_info = None
            return not told
        return True

    for name in logging.root.manager.loggerDict:  # each has a level of its own
        if name.startswith(("torch.distributed.elastic", "torch.multiprocessing")):
            logging.getLogger(name).setLevel(logging.ERROR)
    logging.getLogger("torch.distributed.elastic.multiprocessing.api").addFilter(brief)


def work(entry: Callable[..., None], arguments: tuple[Any, ...], report: Path) -> RegardError | None:
    """What each process does. After an error that is written down, a restart would not mend it: it is the answer."""
    earlier = read_report(report)
    if earlier:
        return earlier
    with listening(patient=True) as interrupt:
        try:
            entry(*arguments)
        except RegardError as error:
            end(error, interrupt, report)
        except Exception:
            # Not by the interpreter's way out: what is left of a process group may wait there for ever.
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    if interrupt.asked:
        # The launcher has had the signal too and no longer takes answers; torch would wait 30 s for it.
        sys.stdout.flush()
        os._exit(0)
    return None


def end(error: RegardError, interrupt: Interrupt, report: Path) -> NoReturn:
    """Ends this process at once: one that lingered would leave the others waiting for it."""
    deadline = time.monotonic() + PATIENCE
    while error.relayed and not interrupt.asked and time.monotonic() < deadline:
        time.sleep(0.05)  # the launcher is to see first the process that died, not the one that noticed
    if not error.relayed or not interrupt.asked:
        leave_report(report, error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(FAILED)
