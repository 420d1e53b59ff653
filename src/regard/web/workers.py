"""Model work beside the event loop: few threads, a short queue, a clock, and an end when the reader leaves."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakSet

from regard.errors import format_message
from regard.web.limits import Limits
from regard.web.responses import RefusedError, client_gone_error

Result = TypeVar("Result")
DONE = object()


class ClosableStream(AsyncIterator[Result]):
    """Items as they come, and what is to be done when no more are wanted.

    A generator that was never asked for its first item runs none of its code, not even `finally`: what was taken for
    it before, a place or a thread, is given back by `close`, which does its work once.
    """

    def __init__(self, items: AsyncGenerator[Result, None], leave: Callable[[], object]) -> None:
        self.items, self.leave, self.closed = items, leave, False

    def __aiter__(self) -> "ClosableStream[Result]":
        return self

    async def __anext__(self) -> Result:
        return await anext(self.items)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.leave()

    async def aclose(self) -> None:
        self.close()
        await self.items.aclose()


class Ticket:
    """The right to be computed until a moment, unless the reader leaves before."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, time.monotonic() + seconds
        self.left = threading.Event()

    def check(self) -> None:
        """Raises where going on is of no use. To be asked between steps."""
        if self.left.is_set():
            raise client_gone_error()
        if time.monotonic() > self.end:
            fix = "ask for less, or serve with a higher --seconds"
            text = format_message("time", f"more than {self.seconds:g} s", "an answer within them", fix)
            raise RefusedError(503, text, wait=1)


class Workers:
    """A few threads and the requests that wait for one."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.busy = limits, 0
        self.tickets: WeakSet[Ticket] = WeakSet()
        self.threads = ThreadPoolExecutor(limits.workers, thread_name_prefix="regard-web")

    def admit(self) -> Ticket:
        """A place in the queue, or the sentence that there is none. Called in the event loop only."""
        most = self.limits.workers + self.limits.waiting
        if self.busy >= most:
            text = format_message("server", f"more than {most} requests at once", "fewer", "try again in a moment")
            raise RefusedError(503, text, wait=1)
        self.busy += 1
        ticket = Ticket(self.limits.seconds)
        self.tickets.add(ticket)
        return ticket

    async def run(self, work: Callable[[Ticket], Result]) -> Result:
        """The result of one piece of work."""
        ticket = self.admit()
        try:
            future = self.start(ticket, lambda: work(ticket))
            return await asyncio.wrap_future(future)
        finally:
            ticket.left.set()

    def stream(self, work: Callable[[Ticket], Iterator[Result]]) -> ClosableStream[Result]:
        """The items of some work, each as soon as it is there. The work is in the queue when this returns."""
        loop, items, ticket = asyncio.get_running_loop(), asyncio.Queue[Any](), self.admit()

        def pump() -> None:
            for item in work(ticket):
                call_in_loop(loop, items.put_nowait, item)
                ticket.check()

        future = self.start(ticket, pump)
        future.add_done_callback(lambda _: call_in_loop(loop, items.put_nowait, DONE))
        return ClosableStream(iterate_items(items, future, ticket), ticket.left.set)

    def start(self, ticket: Ticket, work: Callable[[], Result]) -> "Future[Result]":
        """Puts work into the queue; its place is free again when the work is over, whoever still reads."""
        loop = asyncio.get_running_loop()

        def check_and_work() -> Result:
            ticket.check()  # who left while waiting costs nothing
            return work()

        future = self.threads.submit(check_and_work)
        future.add_done_callback(lambda _: call_in_loop(loop, self.release))
        return future

    def release(self) -> None:
        self.busy -= 1

    def close(self) -> None:
        """End what is under way at its next step, and what waits before its first."""
        for ticket in self.tickets:
            ticket.left.set()
        self.threads.shutdown(wait=False, cancel_futures=True)


async def iterate_items(
    items: "asyncio.Queue[Any]", future: "Future[None]", ticket: Ticket
) -> AsyncGenerator[Any, None]:
    """What a thread puts into a queue. When nobody takes it any more, the thread is told."""
    try:
        while (item := await items.get()) is not DONE:
            yield item
        future.result()  # raises what the work raised
    finally:
        ticket.left.set()


def call_in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> None:
    """Calls in the loop, unless it is closed: then nobody is there to be told."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)
