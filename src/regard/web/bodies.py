"""Read the body and the fields of a request, within limits, and check them one by one."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from starlette.requests import ClientDisconnect, Request

from regard.errors import RegardError, wrong
from regard.inspect.display.fields import Fields
from regard.web.responses import RefusedError, client_gone_error, refuse

UNIVERSAL = "application/octet-stream"
DIGITS = 20  # of a length that is one


async def read_body(request: Request, kind: str, most: int, patience: float) -> bytes:
    """Return the body, of content type `kind`, of at most `most` bytes, that arrives within `patience` seconds.

    The content type is checked because another site's page cannot send ours without asking the server first.
    """
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != kind:
        raise refuse(415, "Content-Type", repr(given[:100]), kind, "send it as the page does")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > DIGITS or int(length) > most:
        raise too_large_error(length[:20], most)
    parts, size = [], 0
    try:
        async with asyncio.timeout(patience):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise too_large_error(f"{size:,}", most)
                parts.append(part)
    except ClientDisconnect:
        raise client_gone_error() from None
    except TimeoutError:
        raise refuse(408, "body", f"{size:,} bytes in {patience:g} s", "all of it", "send it at once") from None
    return b"".join(parts)


def too_large_error(length: str, most: int) -> RefusedError:
    """Return the refusal of a body that is too large."""
    return refuse(413, "body", f"{length} bytes", f"at most {most:,}", "send less")


async def read_fields(request: Request, most: int, patience: float) -> Fields:
    """Return the fields of a body, which must be a JSON object."""
    content = await read_body(request, "application/json", most, patience)
    try:
        values = json.loads(
            content.decode("utf-8"), parse_constant=reject_constant, object_pairs_hook=reject_duplicates
        )
    except RegardError:
        raise
    except (ValueError, RecursionError):
        raise wrong("body", "something else", "a JSON object", "send it as the page does") from None
    if not isinstance(values, dict):
        raise wrong("body", f"a JSON {type(values).__name__}", "a JSON object", "send it as the page does")
    return Fields(values)


def reject_constant(name: str) -> Any:
    """Raise at NaN and infinities, which are not JSON."""
    raise ValueError(name)


def reject_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raise if a name stands twice: two parsers might take two different values."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise wrong("body", "a name that is there twice", "each name once", "leave one of the two out")
    return values


def read_query(request: Request) -> Fields:
    """Return the fields of a query string."""
    return Fields(reject_duplicates(request.query_params.multi_items()))
