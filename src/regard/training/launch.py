"""Several processes on this machine, without torchrun. With torchrun nothing of this is needed."""

import logging
import os
import signal
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

from regard.errors import RegardError, format_message
from regard.training.failures import ProcessError, read_report, write_report
from regard.training.interrupt import Interrupt, catch_signals, hide_from_children

FAILED = 2  # how a process ends whose error is written down
PATIENCE = 5.0  # seconds in which the launcher notices that a process died


def launch(entry: Callable[..., None], *arguments: Any, processes: int, restarts: int = 0) -> bool:
    """Run `entry(*arguments)` in each of `processes` new processes and wait; return False if they were interrupted.

    If one dies, all are restarted, up to `restarts` times; `train` then goes on from its last checkpoint.
    `entry` must be a function that another process can import.
    """
    cores = os.cpu_count() or 1
    # Threads that compete for a core make small operations up to 200 times slower.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // processes)))
    quiet_torch_logs()
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
        return run_processes(config, entry, arguments, report)


def run_processes(config: LaunchConfig, entry: Callable[..., None], arguments: tuple[Any, ...], report: Path) -> bool:
    """Start the processes and wait. The error that one of them wrote down is raised here, once."""
    try:
        with hide_from_children():
            answers = elastic_launch(config, run_worker)(entry, arguments, report)
    except SignalException:
        if get_saved_mark(report).exists():
            return False  # the processes have saved and printed how to go on
        raise KeyboardInterrupt from None
    except ChildFailedError as error:
        problem = read_report(report)
        if problem:
            raise problem from None
        rank, failure = error.get_first_failure()
        got = f"process {rank} ended by {failure.signal_name() if failure.exitcode < 0 else failure.exitcode}"
        fix = "look at its output above; regard resume goes on from the last checkpoint, with --restarts 1 by itself"
        raise ProcessError(format_message("processes", got, "all to finish", fix)) from None
    problem = next((answer for answer in answers.values() if answer), None)
    if problem:
        raise problem
    return True


def get_saved_mark(report: Path) -> Path:
    """Return the file that is there when a process that was interrupted has saved, and said so."""
    return report.with_name("saved")


def quiet_torch_logs() -> None:
    """Shorten what torch logs about a killed process to one line; drop it if we report the error ourselves."""

    def keep_record(record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], ProcessExitedException):
            is_reported = record.exc_info[1].exit_code == FAILED
            record.exc_info = None
            return not is_reported
        return True

    for name in logging.root.manager.loggerDict:  # each has a level of its own
        if name.startswith(("torch.distributed.elastic", "torch.multiprocessing")):
            logging.getLogger(name).setLevel(logging.ERROR)
    logging.getLogger("torch.distributed.elastic.multiprocessing.api").addFilter(keep_record)


def run_worker(entry: Callable[..., None], arguments: tuple[Any, ...], report: Path) -> RegardError | None:
    """Run one of the processes; return the error that an earlier start wrote down, which a restart would not mend."""
    earlier = read_report(report)
    if earlier:
        return earlier
    with catch_signals(patient=True) as interrupt:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        if interrupt.asked:
            os._exit(0)  # while Python began
        try:
            entry(*arguments)
        except RegardError as error:
            end_process(error, interrupt, report)
        except Exception:
            # Not by the interpreter's way out: what is left of a process group may wait there for ever.
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    if interrupt.asked:
        get_saved_mark(report).touch()
        # The launcher has had the signal too and no longer takes answers; torch would wait 30 s for it.
        sys.stdout.flush()
        os._exit(0)
    return None


def end_process(error: RegardError, interrupt: Interrupt, report: Path) -> NoReturn:
    """End this process at once: one that lingered would leave the others waiting for it."""
    deadline = time.monotonic() + PATIENCE
    while error.relayed and not interrupt.asked and time.monotonic() < deadline:
        time.sleep(0.05)  # the launcher is to see first the process that died, not the one that noticed
    if not error.relayed or not interrupt.asked:
        write_report(report, error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(FAILED)
