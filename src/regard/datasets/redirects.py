"""Open addresses by http and https only, and follow a few redirects, never to a less safe address."""

import urllib.request
from typing import Any
from urllib.parse import urlsplit

from regard.datasets.bounds import get_bound
from regard.datasets.connections import TimedHandler, TimedSecureHandler
from regard.datasets.files import File

REDIRECTS = get_bound("download", "redirects")

WEB = ("http", "https")


class RedirectHandler(urllib.request.HTTPRedirectHandler):
    """Follows redirects to other http and https addresses.

    A file without a known sha256 is not followed from https to http: nobody could tell who answered.
    """

    max_redirections = max_repeats = REDIRECTS

    def __init__(self, file: File) -> None:
        self.file = file

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        check_address(newurl)
        if req.type == "https" and urlsplit(newurl).scheme == "http" and not self.file.has_checksum:
            raise ValueError(f"a redirect to {newurl[:200]}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_address(address: str) -> None:
    """Raise a ValueError unless an address is one of the web."""
    parts = urlsplit(address)
    if parts.scheme not in WEB or not parts.hostname:
        raise ValueError(f"{address[:200]!r}, which is not an address of the web")
    _ = parts.port  # raises unless it is a number


def build_opener(file: File) -> urllib.request.OpenerDirector:
    """Return an opener that knows http and https, and none of the other schemes of urllib."""
    check_address(file.address)
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        TimedHandler(),
        TimedSecureHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        RedirectHandler(file),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener
