"""Ctrl-C, a polite kill and a terminal that is closed end a run at its next step, with everything saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGHUP"):  # not on Windows
    SIGNALS.append(signal.SIGHUP)


class Interrupt:
    """Whether the run was asked to end."""

    asked: bool = False


@contextmanager
def catch_signals(*, patient: bool) -> Iterator[Interrupt]:
    """Listen for SIGINT, SIGTERM and SIGHUP while the block runs; nohup is respected.

    A second signal ends the process at once, as usual; not with `patient`: a process among others is sent
    the same signal twice, by the terminal and by the launcher.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread may listen; whoever runs training in another has a `stop`
        return
    before = {int(number): signal.getsignal(number) for number in SIGNALS if not is_ignored(number)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def request_stop(number: int, frame: FrameType | None) -> None:
        interrupt.asked = True
        earlier = before[number]
        if not patient:
            restore()
        elif callable(earlier) and earlier is not signal.default_int_handler:
            earlier(number, frame)  # the launcher's, which listens around this

    for number in before:
        signal.signal(number, request_stop)
    try:
        yield interrupt
    finally:
        restore()


def is_ignored(number: signal.Signals) -> bool:
    """Return whether the process was started by nohup, so that closing its terminal must not end it."""
    return number.name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN
