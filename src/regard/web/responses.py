"""Answer in JSON; an error is always `{"error": "name: got …, expected …; fix: …"}`."""

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse

from regard.errors import RegardError, format_message
from regard.web.messages import localize_for

# Two or more folders from the root, as Unix or Windows writes them; not a part of an address or of another path.
PATH = re.compile(r"(?<![\w:/.])(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\",;()]+)+[/\\]([^\s/\\'\",;()]*)")
LOG = logging.getLogger("regard.web")


class RefusedError(RegardError):
    """A request that is not served, with the status that says why; `wait` is when to try again, in seconds."""

    def __init__(self, status: int, text: str, *, wait: int | None = None) -> None:
        super().__init__(text)
        self.status, self.wait = status, wait


def refuse(status: int, name: str, got: object, expected: str, fix: str) -> RefusedError:
    """Return a refusal in the one wording, to be raised by the caller."""
    return RefusedError(status, format_message(name, got, expected, fix))


def client_gone_error() -> RefusedError:
    """Return the refusal of a request whose client has gone; nobody reads it."""
    return refuse(499, "request", "a reader who left", "one who waits", "ask again")


def not_finite_error() -> RefusedError:
    """Return the refusal of an answer with numbers that JSON cannot hold."""
    fix = "train it again with a lower rate"
    return refuse(409, "model", "numbers that are not finite", "finite numbers", fix)


def busy_error(name: str, got: str, expected: str, fix: str, wait: int = 1) -> RefusedError:
    """Return the refusal of a server that is busy: try again after `wait` seconds."""
    return RefusedError(503, format_message(name, got, expected, fix), wait=wait)


class SafeJsonResponse(JSONResponse):
    """JSON in which half a surrogate pair is a question mark: a file may hold one, and messages may quote it."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def answer_json(values: Any, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return an answer as JSON; raise if it has numbers that are not finite."""
    try:
        return SafeJsonResponse(values, headers=headers)
    except ValueError:
        raise not_finite_error() from None


def answer_error(request: HTTPConnection, text: str, status: int, wait: int | None = None) -> JSONResponse:
    """Return an error as the page reads it, in the language of the request."""
    headers = {} if wait is None else {"Retry-After": str(wait)}
    return SafeJsonResponse({"error": localize_for(request, text)}, status, headers)


def hide_paths(text: str) -> str:
    """Return a sentence with the last part of each path in it: where things lie on this machine is nobody's business.

    >>> hide_paths("config: got /home/ann/runs/a/config.toml, expected one; fix: regard resume runs/a")
    'config: got config.toml, expected one; fix: regard resume runs/a'
    """
    return PATH.sub(r"\1", text)


def handle_refusal(request: Request, error: Exception) -> JSONResponse:
    """Answer with an error of ours, which is the caller's fault unless it has another status."""
    return answer_error(request, hide_paths(str(error)), getattr(error, "status", 400), getattr(error, "wait", None))


def handle_http_error(request: Request, error: Exception) -> JSONResponse:
    """Answer with Starlette's own errors, no such path and no such method, in our wording."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        fix = "use GET, or POST where the page does"
        text = format_message("method", request.method, "one that this path has", fix)
    else:
        text = format_message("path", request.url.path[:200], "one of this server's", "open /")
    return answer_error(request, text, status)


def handle_fault(request: Request, error: Exception) -> JSONResponse:
    """Answer that the server has a fault, and no more; the rest is in the log."""
    return answer_error(request, log_fault(error), 500)


def log_fault(error: BaseException) -> str:
    """Log a fault of the server, and return the answer to the client."""
    LOG.error("fault while serving", exc_info=error)
    got = f"an error of its own ({type(error).__name__})"
    return format_message("server", got, "none", "see the terminal it runs in")


HANDLERS: Any = {RegardError: handle_refusal, HTTPException: handle_http_error, Exception: handle_fault}
