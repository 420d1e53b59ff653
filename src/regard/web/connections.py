"""Close connections that ask for nothing, and those that never read their answer."""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.datasets.bounds import get_bound


class Connection(H11Protocol):
    """A connection with two timers: until the whole head of a request is there, and while an answer is not read.

    uvicorn has a timer between two requests only, and the first byte stops it. If there are too many connections, the
    one that has been silent for longest is closed, of the address that has the most of them: a client that asks at
    once never waits for those that do not.
    """

    MOST = get_bound("server", "connections")
    SILENCE = get_bound("server", "silence")
    UNREAD = get_bound("server", "unread")

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.since = self.loop.time()
        self.silence: asyncio.TimerHandle | None = None
        self.unread: asyncio.TimerHandle | None = None

    @property
    def is_silent(self) -> bool:
        """Whether no request on it is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def address(self) -> str:
        """The address of the client."""
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.make_room()
        self.update_timer()

    def make_room(self) -> None:
        """Close the connection that has been silent for longest, if there are too many."""
        if len(self.connections) <= self.MOST:
            return
        others = (one for one in self.connections if isinstance(one, Connection) and one is not self)
        silent = [one for one in others if one.is_silent and not one.transport.is_closing()]
        crowd = Counter(one.address for one in silent)
        if silent:
            max(silent, key=lambda one: (crowd[one.address], -one.since)).drop()

    def update_timer(self) -> None:
        """Start the timer if a request is awaited, and stop it if there is one."""
        if not self.is_silent:
            cancel_timer(self.silence)
            self.silence = None
        elif self.silence is None:
            self.since = self.loop.time()
            self.silence = self.loop.call_later(self.SILENCE, self.drop)

    def handle_events(self) -> None:
        super().handle_events()
        self.update_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.update_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.unread is None:
            self.unread = self.loop.call_later(self.UNREAD, self.drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        cancel_timer(self.unread)
        self.unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        cancel_timer(self.silence)
        cancel_timer(self.unread)
        super().connection_lost(exc)

    def drop(self) -> None:
        """End the connection at once."""
        self.transport.abort()


def cancel_timer(timer: asyncio.TimerHandle | None) -> None:
    """Cancel a timer, if it runs."""
    if timer is not None:
        timer.cancel()


def raise_file_limit() -> None:
    """Let this process open as many files as there may be connections, if the system allows it: each takes one."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * Connection.MOST
    if soft != resource.RLIM_INFINITY and soft < wanted:
        reachable = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):  # then it is as it was
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, reachable), hard))
