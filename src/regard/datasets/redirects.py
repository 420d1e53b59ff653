"""Who may be asked for a file: servers of the web, and those they send us on to, a few times and never less safely."""

import urllib.request
from typing import Any
from urllib.parse import urlsplit

from regard.bounds import most
from regard.datasets.connections import SafeWeb, Web
from regard.datasets.files import File

REDIRECTS = most("download", "redirects")

WEB = ("http", "https")


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to other addresses of the web.

    A file that no sum is known of is not followed from https to http: nobody could tell who answered.
    """

    max_redirections = max_repeats = REDIRECTS

    def __init__(self, file: File) -> None:
        self.file = file

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: Any,
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        check_address(newurl)
        if req.type == "https" and urlsplit(newurl).scheme == "http" and not self.file.checked:
            raise ValueError(f"a way on to {newurl[:200]}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_address(address: str) -> None:
    """Raises a ValueError where an address is none of the web."""
    parts = urlsplit(address)
    if parts.scheme not in WEB or not parts.hostname:
        raise ValueError(f"{address[:200]!r}, which is no address of the web")
    _ = parts.port  # raises where it is no number


def opener(file: File) -> urllib.request.OpenerDirector:
    """What asks for a file: by http and https, and by nothing else that urllib knows."""
    check_address(file.address)
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        Web(),
        SafeWeb(),
        urllib.request.HTTPDefaultErrorHandler(),
        Redirects(file),
        urllib.request.HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made
