"""Server-sent events: what an answer says while it is still being found."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from starlette.responses import StreamingResponse

from regard.errors import RegardError
from regard.web.answers import fault


class Event(NamedTuple):
    """One of them: its name, and what it says."""

    name: str
    data: Mapping[str, Any]

    def encode(self) -> bytes:
        r"""As it is sent. JSON has no line breaks of its own, so one line of data is enough.

        >>> Event("step", {"token": "é"}).encode()
        b'event: step\ndata: {"token":"\\u00e9"}\n\n'
        """
        return f"event: {self.name}\ndata: {json.dumps(self.data, separators=(',', ':'))}\n\n".encode()


def streamed(events: AsyncIterator[Event]) -> StreamingResponse:
    """An answer of events. What goes wrong after it has begun is the last of them."""
    # Not no-store, which all other answers have: Chromium may call a stream of that kind aborted though all of it came.
    return StreamingResponse(encoded(events), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def encoded(events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
    try:
        async for event in events:
            yield event.encode()
    except RegardError as error:
        yield Event("error", {"error": str(error)}).encode()
    except Exception as error:  # the reader is told, whatever it was
        yield Event("error", {"error": fault(error)}).encode()
