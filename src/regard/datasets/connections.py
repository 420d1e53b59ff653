"""Connections to servers that may take their time, but not for ever: the head of an answer and each piece have a limit.

A socket's own timeout notices silence only: a server that sends a byte now and then would keep us for years.
"""

import http.client
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from regard.datasets.bounds import get_bound

SECONDS = float(get_bound("download", "seconds"))
PIECE = get_bound("download", "piece")
CHECKS = 20  # how often the clock is read in that time


class Clock:
    """The time that is left until something must have come."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.is_over, self.stopped = seconds, False, threading.Event()
        self.renew()

    def renew(self) -> None:
        """Start the time again."""
        self.begun = time.monotonic()

    def watch(self, line: socket.socket) -> None:
        """Cut a connection when the time is over, which ends whatever waits for it."""
        while not self.stopped.wait(self.seconds / CHECKS):
            if time.monotonic() - self.begun > self.seconds:
                self.is_over = True
                with suppress(OSError):  # it may be closed by now
                    # Not SSLSocket.shutdown, which would remove the state that a reader in another thread still uses.
                    socket.socket.shutdown(line, socket.SHUT_RDWR)
                return


@contextmanager
def limit_time(line: socket.socket) -> Iterator[Clock]:
    """Cut a connection unless its clock is renewed in time, and raise that as a `TimeoutError`."""
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


class TimedResponse(http.client.HTTPResponse):
    """An answer whose head and pieces must arrive in time."""

    def __init__(self, sock: socket.socket, *rest: Any, **more: Any) -> None:
        super().__init__(sock, *rest, **more)
        self.line = sock

    def begin(self) -> None:
        with limit_time(self.line):
            super().begin()

    def pieces(self) -> Iterator[bytes]:
        """Yield the content as it comes."""
        with limit_time(self.line) as clock:
            while piece := self.read(PIECE):
                clock.renew()
                yield piece
                clock.renew()  # what was done with it is not the server's fault


class TimedConnection(http.client.HTTPConnection):
    """A connection whose answers must arrive in time."""

    response_class = TimedResponse


class TimedSecureConnection(http.client.HTTPSConnection):
    """An encrypted connection whose answers must arrive in time."""

    response_class = TimedResponse


class TimedHandler(urllib.request.HTTPHandler):
    """Opens http addresses with a time limit."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(TimedConnection, req)


class TimedSecureHandler(urllib.request.HTTPSHandler):
    """Opens https addresses with a time limit."""

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(TimedSecureConnection, req)
