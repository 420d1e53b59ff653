"""Connections to servers that may take their time, but not for ever: the head of an answer and each piece have a limit.

The timeout of a socket is only for a silence. A server that sends a byte now and then would keep us for years.
"""

import http.client
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from regard.bounds import most

SECONDS = float(most("download", "seconds"))
PIECE = most("download", "piece")
CLOSELY = 20  # looks at the clock in that time


class Clock:
    """The time that is left until something must have come."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.is_over, self.stopped = seconds, False, threading.Event()
        self.renew()

    def renew(self) -> None:
        """Begin anew."""
        self.begun = time.monotonic()

    def watch(self, line: socket.socket) -> None:
        """Cut a line when the time is over, which ends whatever waits for it."""
        while not self.stopped.wait(self.seconds / CLOSELY):
            if time.monotonic() - self.begun > self.seconds:
                self.is_over = True
                with suppress(OSError):  # it may be closed by now
                    # Not SSLSocket's own, which takes its state away from whoever reads.
                    socket.socket.shutdown(line, socket.SHUT_RDWR)
                return


@contextmanager
def timed(line: socket.socket) -> Iterator[Clock]:
    """Cut a line if the clock is not renewed in time; what comes of that is told as a `TimeoutError`."""
    clock = Clock(SECONDS)
    thread = threading.Thread(target=clock.watch, args=(line,), daemon=True)
    thread.start()
    try:
        yield clock
    except (OSError, http.client.HTTPException):
        if not clock.is_over:
            raise
    finally:
        clock.stopped.set()
        thread.join()
    if clock.is_over:
        raise TimeoutError(f"fewer than {PIECE:,} bytes in {clock.seconds:g} seconds")


class Answer(http.client.HTTPResponse):
    """An answer that keeps to the time."""

    def __init__(self, sock: socket.socket, *rest: Any, **more: Any) -> None:
        super().__init__(sock, *rest, **more)
        self.line = sock

    def begin(self) -> None:
        with timed(self.line):
            super().begin()

    def pieces(self) -> Iterator[bytes]:
        """Yield the content as it comes."""
        with timed(self.line) as clock:
            while piece := self.read(PIECE):
                clock.renew()
                yield piece
                clock.renew()  # what was done with it is not the server's fault


class Connection(http.client.HTTPConnection):
    """A connection whose answers keep to the time."""

    response_class = Answer


class SafeConnection(http.client.HTTPSConnection):
    """The same, encrypted."""

    response_class = Answer


class Web(urllib.request.HTTPHandler):
    """Asks by http."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(Connection, req)


class SafeWeb(urllib.request.HTTPSHandler):
    """Asks by https."""

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(SafeConnection, req)
