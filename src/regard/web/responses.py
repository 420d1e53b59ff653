"""What the server says where it does not do as asked: always `{"error": "name: got …, expected …; fix: …"}`."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from regard.errors import RegardError, format_message

LOG = logging.getLogger("regard.web")


class RefusedError(RegardError):
    """A request that is not served, with the status that says why; `wait` is when to try again, in seconds."""

    def __init__(self, status: int, text: str, *, wait: int | None = None) -> None:
        super().__init__(text)
        self.status, self.wait = status, wait


def refuse(status: int, name: str, got: object, expected: str, fix: str) -> RefusedError:
    """A refusal in the one wording, to be raised by the caller."""
    return RefusedError(status, format_message(name, got, expected, fix))


def client_gone_error() -> RefusedError:
    """A refusal for somebody who left, which nobody reads."""
    return RefusedError(499, format_message("request", "a reader who left", "one who waits", "ask again"))


def not_finite_error() -> RefusedError:
    """A refusal where a model gave numbers that JSON cannot say."""
    expected, fix = "finite numbers", "train it again with a lower rate"
    return refuse(409, "model", "numbers that are not finite", expected, fix)


class SafeJsonResponse(JSONResponse):
    """JSON in which half a surrogate pair is a question mark: a file may hold one, and messages say what it holds."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def answer_json(values: Any, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An answer as JSON, or a sentence where a model's numbers are none."""
    try:
        return SafeJsonResponse(values, headers=headers)
    except ValueError:
        raise not_finite_error() from None


def answer_error(text: str, status: int, wait: int | None = None) -> JSONResponse:
    """An error as the page reads it."""
    headers = {} if wait is None else {"Retry-After": str(wait)}
    return SafeJsonResponse({"error": text}, status, headers)


def handle_refusal(request: Request, error: Exception) -> JSONResponse:
    """A refusal as an answer."""
    if isinstance(error, RefusedError):
        return answer_error(str(error), error.status, error.wait)
    return answer_error(str(error), 400)


def handle_http_error(request: Request, error: Exception) -> JSONResponse:
    """Starlette's own errors, no such path and no such method, in our wording."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        text = format_message(
            "method", request.method, "one that this path has", "use GET, or POST where the page does"
        )
    else:
        text = format_message("path", request.url.path[:200], "one of this server's", "open /")
    return answer_error(text, status)


def handle_fault(request: Request, error: Exception) -> JSONResponse:
    """A fault of ours: the reader is told that, and no more; the rest is in the log."""
    return answer_error(log_fault(error), 500)


def log_fault(error: BaseException) -> str:
    """What the reader is told of a fault of ours."""
    LOG.error("fault while serving", exc_info=error)
    return format_message(
        "server", f"an error of its own ({type(error).__name__})", "none", "see the terminal it runs in"
    )


HANDLERS: Any = {RegardError: handle_refusal, HTTPException: handle_http_error, Exception: handle_fault}
