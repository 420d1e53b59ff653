"""Ctrl-C ends every command with one sentence and exit code 130, at any moment.

Python raises an exception in the main thread. That alone is not enough: the exception is lost in code that drops
exceptions, as some imports and callbacks do, and it has to wait for a long call of a library. So a thread watches: it
raises once more, and at last ends the process. That is safe: what is written takes its place only when it is whole.
"""

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

INTERRUPTED = 130  # what a shell reports after Ctrl-C
REMINDER = 0.5  # seconds until the exception is raised once more
LAST = 3.0  # seconds from then until the process is ended

AGAIN = "each file is whole, a new one or the one before; run the same command again"
ANSWERS = "answers that were written are kept; run the same command again for all"
TRAINING = "the last checkpoint is kept: regard resume RUN goes on from there; without one, run the same command again"
# What is kept if a command is interrupted, and how to go on; a command that knows more adds a note to the exception.
KEPT = {
    "train": TRAINING,
    "resume": TRAINING,
    "translate": ANSWERS,
    "predict": ANSWERS,
    "answer": ANSWERS,
    "ask": ANSWERS,
    "caption": ANSWERS,
    "transcribe": ANSWERS,
    "data": "what was downloaded is kept; the same command goes on from there",
    "serve": "the server has ended, and runs are as they were; run the same command to serve them again",
}


class Interruption:
    """What happens between Ctrl-C and the end of the process."""

    def __init__(self, words: Sequence[str]) -> None:
        self.kept = KEPT.get(words[0], AGAIN) if words else AGAIN
        self.code: int | None = None  # with which the process ends, from the moment when the command has ended
        self.count = 0
        self.is_told = self.is_reminder = False

    def listen(self) -> None:
        """Catch Ctrl-C from now on; a process that was started to ignore it goes on ignoring it."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            return
        signal.signal(signal.SIGINT, self.interrupt)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
        _thread.start_new_thread(self.watch, (reader,))

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise in the main thread; end the process if it was asked to end before, or has nothing left to do."""
        if self.code is not None:
            os._exit(self.code)
        if self.is_reminder:
            self.is_reminder = False
            if is_unwinding():
                return
        else:
            self.count += 1
        if self.count > 1:
            self.end()
        raise KeyboardInterrupt

    def watch(self, reader: int) -> None:
        """Wait for Ctrl-C, also while the main thread cannot answer, and see that the process ends."""
        while signal.SIGINT not in os.read(reader, 4096) or signal.getsignal(signal.SIGINT) != self.interrupt:
            pass  # another signal, or one that a training or the server answers
        time.sleep(REMINDER)
        if self.code is None:
            self.is_reminder = True
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(LAST)
        self.end()

    def finish(self, error: KeyboardInterrupt) -> None:
        """Say what is kept and write out the answers so far; from now on another Ctrl-C ends the process at once."""
        self.count = max(1, self.count)
        self.tell("; ".join(getattr(error, "__notes__", ())) or self.kept)
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        self.code = INTERRUPTED

    def tell(self, kept: str) -> None:
        """Print the sentence, unless it was printed; a terminal gets its cursor back, and a new line behind its ^C."""
        if self.is_told:
            return
        self.is_told = True
        with contextlib.suppress(OSError, ValueError, AttributeError):
            text = f"regard: interrupted; {kept}\n"
            if sys.stderr.isatty():
                text = f"\x1b[?25h\n{text}"
            os.write(sys.stderr.fileno(), text.encode(sys.stderr.encoding, "backslashreplace"))

    def end(self) -> None:
        """End the process at once, with the sentence."""
        self.tell(self.kept)
        os._exit(INTERRUPTED if self.code is None else self.code)


def is_unwinding() -> bool:
    """Return whether the exception of an earlier Ctrl-C is on its way to the top of the main thread."""
    error: BaseException | None = sys.exception()
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
