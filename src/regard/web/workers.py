"""Run model work beside the event loop: few threads, a short queue, and deadlines; clients that leave cancel it."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakSet

from regard.web.limits import Limits
from regard.web.responses import busy_error, client_gone_error

Result = TypeVar("Result")
DONE = object()


class ClosableStream(AsyncIterator[Result]):
    """Items as they come, and a function to call once when no more are wanted.

    A generator that was never asked for its first item runs none of its code, not even `finally`: `close` gives back
    what was reserved for it before, such as a thread.
    """

    def __init__(self, items: AsyncGenerator[Result, None], leave: Callable[[], object]) -> None:
        self.items, self.leave, self.closed = items, leave, False

    def __aiter__(self) -> "ClosableStream[Result]":
        return self

    async def __anext__(self) -> Result:
        return await anext(self.items)

    def close(self) -> None:
        """Give back what was reserved, if that has not been done."""
        if not self.closed:
            self.closed = True
            self.leave()

    async def aclose(self) -> None:
        """Close, and end the generator."""
        self.close()
        await self.items.aclose()


class Ticket:
    """Deadline and cancellation of one request."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, time.monotonic() + seconds
        self.cancelled = threading.Event()

    def check(self) -> None:
        """Raise if the request is cancelled or late. To be called between steps of the work."""
        if self.cancelled.is_set():
            raise client_gone_error()
        if time.monotonic() > self.end:
            fix = "ask for less, or serve with a higher --seconds"
            raise busy_error("time", f"more than {self.seconds:g} s", "an answer within them", fix)


class Workers:
    """A few threads and the requests that wait for one."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.busy = limits, 0
        self.tickets: WeakSet[Ticket] = WeakSet()
        self.threads = ThreadPoolExecutor(limits.workers, thread_name_prefix="regard-web")

    def admit(self) -> Ticket:
        """Return a place in the queue; raise if it is full. Called in the event loop only."""
        most = self.limits.workers + self.limits.waiting
        if self.busy >= most:
            raise busy_error("server", f"more than {most} requests at once", "fewer", "try again in a moment")
        self.busy += 1
        ticket = Ticket(self.limits.seconds)
        self.tickets.add(ticket)
        return ticket

    async def run(self, work: Callable[[Ticket], Result]) -> Result:
        """Return the result of one piece of work."""
        ticket = self.admit()
        try:
            future = self.start(ticket, lambda: work(ticket))
            return await asyncio.wrap_future(future)
        finally:
            ticket.cancelled.set()

    def stream(self, work: Callable[[Ticket], Iterator[Result]]) -> ClosableStream[Result]:
        """Return the items of some work, each as soon as it is there. The work is in the queue when this returns."""
        loop, items, ticket = asyncio.get_running_loop(), asyncio.Queue[Any](), self.admit()

        def pump() -> None:
            for item in work(ticket):
                call_in_loop(loop, items.put_nowait, item)
                ticket.check()

        future = self.start(ticket, pump)
        future.add_done_callback(lambda _: call_in_loop(loop, items.put_nowait, DONE))
        return ClosableStream(iterate_items(items, future, ticket), ticket.cancelled.set)

    def start(self, ticket: Ticket, work: Callable[[], Result]) -> "Future[Result]":
        """Put work into the queue; its place is free again when the work is over."""
        loop = asyncio.get_running_loop()

        def check_and_work() -> Result:
            ticket.check()  # work that was cancelled while it waited is not begun
            return work()

        future = self.threads.submit(check_and_work)
        future.add_done_callback(lambda _: call_in_loop(loop, self.release))
        return future

    def release(self) -> None:
        """Free a place in the queue."""
        self.busy -= 1

    def close(self) -> None:
        """Cancel all work: at its next step, or before its first if it waits."""
        for ticket in self.tickets:
            ticket.cancelled.set()
        self.threads.shutdown(wait=False, cancel_futures=True)


async def iterate_items(
    items: "asyncio.Queue[Any]", future: "Future[None]", ticket: Ticket
) -> AsyncGenerator[Any, None]:
    """Yield what a thread puts into a queue; cancel its work when nobody takes it any more."""
    try:
        while (item := await items.get()) is not DONE:
            yield item
        future.result()  # raises what the work raised
    finally:
        ticket.cancelled.set()


def call_in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> None:
    """Call a function in the loop, unless the loop is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)
