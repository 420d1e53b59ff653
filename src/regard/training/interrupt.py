"""Ctrl-C, a polite kill and a terminal that is closed end a run at its next step, with everything saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType
from typing import Any

SIGNALS = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGHUP"):  # not on Windows
    SIGNALS.append(signal.SIGHUP)


class Interrupt:
    """Whether the run was asked to end.

    The second signal ends the process at once, as usual; not if `patient`: a process among others is sent the same
    signal twice, by the terminal and by the launcher.
    """

    def __init__(self, *, patient: bool) -> None:
        self.asked, self.patient = False, patient
        self.before: dict[int, Any] = {}
        self.watcher = -1

    def listen(self) -> None:
        """Answer the signals instead of whoever did so before."""
        self.before = {int(number): signal.getsignal(number) for number in SIGNALS if not is_ignored(number)}
        self.watcher = signal.set_wakeup_fd(-1)  # the command line's, which would end a run that takes its time
        for number in self.before:
            signal.signal(number, self.request_stop)

    def restore(self) -> None:
        """Let those answer who did so before."""
        for number, handler in self.before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self.watcher, warn_on_full_buffer=False)

    def request_stop(self, number: int, frame: FrameType | None) -> None:
        """Note a signal, also for a launcher that listens around this."""
        self.asked = True
        earlier = self.before[number]
        if not self.patient:
            self.restore()
        elif isinstance(getattr(earlier, "__self__", None), Interrupt):
            earlier(number, frame)


@contextmanager
def catch_signals(*, patient: bool) -> Iterator[Interrupt]:
    """Listen for SIGINT, SIGTERM and SIGHUP while the block runs; nohup is respected."""
    interrupt = Interrupt(patient=patient)
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread may listen; whoever runs training in another has a `stop`
        return
    interrupt.listen()
    try:
        yield interrupt
    finally:
        interrupt.restore()


@contextmanager
def hide_from_children() -> Iterator[None]:
    """Let processes that are started in the block not notice Ctrl-C, which a terminal sends to all: whoever started
    them ends them, and they print nothing about it, not even while Python begins.

    Signals that a thread blocks are blocked in what it starts. Another thread receives them for this process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ended = threading.Event()

    def receive() -> None:
        while not ended.wait(0.1):  # Python looks for signals of other threads only when one of them has run
            pass

    threading.Thread(target=receive, daemon=True).start()
    resource_tracker.ensure_running()  # its start, which other processes cause, would unblock the signal again
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        ended.set()


def is_ignored(number: signal.Signals) -> bool:
    """Return whether the process was started by nohup, so that closing its terminal must not end it."""
    return number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN
