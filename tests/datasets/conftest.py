"""A server on this machine that misbehaves on purpose."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

CONTENT = bytes(range(256)) * 1200  # 300 kB: several chunks


@dataclass
class FileShelf:
    """What the server gives out, and what it was asked for."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=lambda: {"/a.bin": CONTENT})
    tag: str = '"one"'
    ranges: bool = True
    announce: bool = True  # the length
    cut: list[int] = field(default_factory=list)  # bytes after which the next answers break off
    codes: list[int] = field(default_factory=list)  # what the next answers are instead
    asked: list[str] = field(default_factory=list)  # the Range of each request
    sent: int = 0
    odd: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)  # what the next answers are, to the bit
    hold: Callable[[], None] = lambda: None  # is called before an answer
    handler: type | None = None  # what answers


class Handler(BaseHTTPRequestHandler):
    shelf: FileShelf

    def do_GET(self) -> None:
        shelf, span = self.shelf, self.headers.get("Range", "")
        shelf.asked.append(span)
        shelf.hold()
        if shelf.codes:
            self.send_error(shelf.codes.pop(0))
            return
        if shelf.odd:
            self.as_told(*shelf.odd.pop(0))
            return
        content = shelf.files.get(self.path.partition("?")[0])
        if content is None:
            self.send_error(404)
            return
        same = self.headers.get("If-Range", shelf.tag) == shelf.tag
        begin = int(span.removeprefix("bytes=").rstrip("-")) if span and shelf.ranges and same else 0
        if begin >= len(content) > 0:
            self.send_error(416)
            return
        self.answer(content, begin)

    def as_told(self, code: int, head: dict[str, str], body: bytes) -> None:
        self.send_response(code)
        for name, value in head.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # whoever asked may have heard enough
            self.wfile.write(body)
        self.close_connection = True

    def answer(self, content: bytes, begin: int) -> None:
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        if self.shelf.announce:
            self.send_header("Content-Length", str(len(content) - begin))
        if self.shelf.tag:
            self.send_header("ETag", self.shelf.tag)
        self.end_headers()
        rest = content[begin:]
        if self.shelf.cut:
            rest = rest[: self.shelf.cut.pop(0)]
            self.close_connection = True
        self.wfile.write(rest)
        self.shelf.sent += len(rest)

    def log_message(self, *words: object) -> None:
        """Do not log."""


@pytest.fixture
def shelf() -> Iterator[FileShelf]:
    made = FileShelf()
    kind = type("Own", (Handler,), {"shelf": made})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    made.handler = kind
    made.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()
