"""Server-sent events: parts of an answer while it is still being computed."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from starlette.requests import HTTPConnection
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from regard.errors import RegardError
from regard.web.messages import localize_for
from regard.web.responses import hide_paths, log_fault, not_finite_error
from regard.web.workers import ClosableStream

KIND = "text/event-stream"
HEADERS = {"Cache-Control": "no-cache"}


class Event(NamedTuple):
    """One event: its name and its data."""

    name: str
    data: Mapping[str, Any]

    def encode(self) -> bytes:
        r"""Return the event as it is sent. JSON has no line breaks of its own, so one line of data is enough.

        >>> Event("step", {"token": "é"}).encode()
        b'event: step\ndata: {"token":"\\u00e9"}\n\n'
        """
        try:
            data = json.dumps(self.data, separators=(",", ":"), allow_nan=False)
        except ValueError:
            raise not_finite_error() from None
        return f"event: {self.name}\ndata: {data}\n\n".encode()


class Stream(StreamingResponse):
    """An answer of events. However it ends, even before the first event, the stream is closed.

    An error after the answer has begun is its last event.
    """

    def __init__(self, request: HTTPConnection, events: ClosableStream[Event]) -> None:
        # Not no-store, which all other answers have: Chromium may call such a stream aborted although all of it came.
        super().__init__(encode_events(request, events), media_type=KIND, headers=HEADERS)
        self.events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.events.close()


def answer_head() -> Response:
    """Return the answer to `HEAD`: the headers alone, because a stream of metrics has no end to wait for."""
    return Response(media_type=KIND, headers=HEADERS)


async def encode_events(request: HTTPConnection, events: ClosableStream[Event]) -> AsyncIterator[bytes]:
    """Yield events as bytes, an error as the last of them, in the language of the request."""
    try:
        async for event in events:
            yield event.encode()
    except RegardError as error:
        yield Event("error", {"error": localize_for(request, hide_paths(str(error)))}).encode()
    except Exception as error:  # whatever it is, the client gets an answer
        yield Event("error", {"error": localize_for(request, log_fault(error))}).encode()
