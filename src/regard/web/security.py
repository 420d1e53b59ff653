"""Admit requests of this server's own page and, if a token is set, only with the token.

Another site's page in the same browser can send requests here and, by rebinding its name to 127.0.0.1, even read the
answers. So the `Host` must be a name we were given or an address (an address cannot be rebound), the `Origin` must be
that host, and the browser's own `Sec-Fetch-Site` must not say otherwise.
"""

import ipaddress
import re
import secrets
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.datasets.bounds import get_bound
from regard.errors import format_message, wrong
from regard.web.responses import answer_error

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
LONGEST_HEAD = get_bound("request", "header bytes")
LOCAL = ("localhost", "127.0.0.1", "::1")
WORD = re.compile(r"[!-~]{1,200}")
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, False, True)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_address(host: str) -> bool:
    """Return whether a host is an address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Access:
    """The names of the server, and the token that requests need, if any.

    With `addresses`, any address is accepted as a name too: the server listens to more than this machine.
    """

    names: tuple[str, ...] = LOCAL
    addresses: bool = False
    token: str | None = None

    def __post_init__(self) -> None:
        if self.token is not None and not WORD.fullmatch(self.token):
            got = "an empty one" if not self.token.strip() else "one that no header can hold"
            fix = "leave --token out where none is needed, or write letters and digits"
            raise wrong("token", got, "1 to 200 printable characters of ASCII without a blank", fix)

    @classmethod
    def from_host(cls, host: str, names: Collection[str] = (), token: str | None = None) -> "Access":
        """Return the access of a server that listens on `host`: with a token if other machines can reach it."""
        if is_loopback(host):
            return cls((*LOCAL, host.lower(), *map(str.lower, names)), token=token)
        # The printed address has the machine's own name if the server listens to everything.
        known = tuple(map(str.lower, (*LOCAL, host, socket.gethostname(), *names)))
        return cls(known, addresses=True, token=secrets.token_urlsafe(24) if token is None else token)

    def find_objection(self, scope: Scope) -> tuple[int, str] | None:
        """Return what is wrong with a request, as a status and a message; None if nothing is."""
        size = count_head_bytes(scope)
        if size > LONGEST_HEAD:
            return 431, format_message("headers", f"{size:,} bytes", f"at most {LONGEST_HEAD:,}", "send less")
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        match = HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        name = match.group(1).strip("[]") if match else ""
        if not match or not (name in self.names or (self.addresses and is_address(name))):
            got = repr(", ".join(hosts)[:100])
            return 403, format_message("Host", got, "a name of this server", "open the address that it printed")
        return check_origin(scope, headers, hosts[0]) or self.check_token(scope, headers)

    def check_token(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Return an objection if the right token is missing. The page itself is not secret."""
        if self.token is None or not scope["path"].startswith("/api/"):
            return None
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if secrets.compare_digest(given.encode(), self.token.encode()):
            return None
        fix = "open the whole address that the server printed"
        return 401, format_message("token", "another" if given else "none", "the one of this server", fix)


def count_head_bytes(scope: Scope) -> int:
    """Return the bytes of the request line and headers. h11 counts them only until they are whole: not if all come at
    once."""
    line = len(scope["method"]) + len(scope.get("raw_path", b"")) + len(scope["query_string"])
    return line + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def check_origin(scope: Scope, headers: Headers, host: str) -> tuple[int, str] | None:
    """Return an objection if the browser says that another site's page is asking."""
    origins = headers.getlist("origin")
    if origins and origins != [f"{scope['scheme']}://{host}"]:
        got, fix = repr(", ".join(origins)[:100]), "use the page of this server"
        return 403, format_message("Origin", got, "none but this server's own", fix)
    site = headers.get("sec-fetch-site", "none")
    # A link from elsewhere may open the page; it may not fetch, embed or post.
    visit = headers.get("sec-fetch-mode") == "navigate" and scope["path"] == "/" and scope["method"] == "GET"
    if site not in ("same-origin", "none") and not visit:
        return 403, format_message("Sec-Fetch-Site", repr(site[:20]), "same-origin", "use the page of this server")
    return None


class Guard:
    """Admit requests that `Access` has no objection to, and add the headers to every answer.

    `close` ends the answers that would go on for ever; to be called when the server ends.
    """

    def __init__(self, app: ASGIApp, access: Access, close: Callable[[], None]) -> None:
        self.app, self.access, self.close = app, access, close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        objection = self.access.find_objection(scope)
        app = self.app if objection is None else answer_error(HTTPConnection(scope), objection[1], objection[0])
        await app(scope, receive, add_headers(send))


def add_headers(send: Send) -> Send:
    """Return a `send` that adds the headers."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers
