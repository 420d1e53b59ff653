"""A real server, and clients that say nothing, say it slowly, never read, leave, or come in crowds."""

import asyncio
import json
import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import make_run

from regard.web.app import build_app, build_server, open_socket
from regard.web.connections import Connection, raise_file_limit
from regard.web.limits import Limits

HEAD = "HTTP/1.1\r\nHost: localhost\r\n"
FOLLOWERS = 5
SILENCE, UNREAD = 5000.0, 3000.0  # seconds, longer than any test


class RunningServer:
    """A server in a thread. Its time limits are longer than any test; `pass_time` moves its clock instead."""

    def __init__(self, run: Path, limits: Limits) -> None:
        self.listening = open_socket("127.0.0.1", 0)
        self.address: tuple[str, int] = self.listening.getsockname()[:2]
        self.uvicorn, self.later = build_server(build_app([run], limits=limits)), 0.0
        self.thread = threading.Thread(target=self.uvicorn.run, args=([self.listening],), daemon=True)

    def read_clock(self) -> float:
        return time.monotonic() + self.later

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass for the server, which notices it by the next request."""
        self.later += seconds
        assert is_served(self.address)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so; ten minutes are a hang."""
        deadline = time.monotonic() + 600
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def stop(self) -> None:
        self.uvicorn.should_exit = True
        self.thread.join(600)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    run = make_run(tmp_path_factory.mktemp("served") / "run", "plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "SILENCE", SILENCE)
        patch.setattr(Connection, "UNREAD", UNREAD)
        patch.setattr(Connection, "MOST", 40)
        running = RunningServer(run, Limits(followers=FOLLOWERS, patience=2.0))
        patch.setattr(asyncio.BaseEventLoop, "time", running.read_clock)
        running.thread.start()
        yield running
        running.stop()


@pytest.fixture
def address(server: RunningServer) -> tuple[str, int]:
    return server.address


@pytest.fixture
def errors() -> Iterator[list[logging.LogRecord]]:
    """What is logged, as the terminal of the server would show it."""
    found: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = found.append  # type: ignore[method-assign]
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "regard.web", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    yield found
    for logger in loggers:
        logger.removeHandler(handler)


def connect(address: tuple[str, int], text: str = "") -> socket.socket:
    client = socket.create_connection(address, timeout=600)
    client.sendall(text.encode())
    return client


def answer(client: socket.socket) -> str:
    """Return all that comes until the server closes."""
    parts = []
    try:
        while part := client.recv(2**16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts).decode("latin-1")


def ask(address: tuple[str, int], text: str) -> str:
    with connect(address, text) as client:
        return answer(client)


def is_served(address: tuple[str, int]) -> bool:
    return ask(address, f"GET /api/state {HEAD}Connection: close\r\n\r\n").startswith("HTTP/1.1 200")


def is_open(client: socket.socket) -> bool:
    """Return whether the server has neither answered nor closed."""
    return not select.select([client], [], [], 0)[0]


def test_silence_ends(server: RunningServer, address: tuple[str, int]) -> None:
    with connect(address) as nothing, connect(address, f"GET / {HEAD}") as half:
        server.pass_time(SILENCE / 2)
        assert is_open(nothing)
        assert is_open(half)
        server.pass_time(SILENCE)
        assert (answer(nothing), answer(half)) == ("", "")


@pytest.mark.parametrize("before", ["", f"GET /api/nothing {HEAD}\r\n"])
def test_a_head_that_comes_byte_by_byte_has_the_same_time(
    server: RunningServer, address: tuple[str, int], before: str
) -> None:
    """Each byte stops the clock of uvicorn; ours goes on until the head is whole. Also behind a request that was."""
    with connect(address, before) as client:
        if before:
            found = b""
            while not found.endswith(b"}"):  # head and body may come one after another
                part = client.recv(2**16)
                assert part
                found += part
            assert found.startswith(b"HTTP/1.1 404")
        for _ in range(5):  # of which the first may come before the answer has ended
            with suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(b"G")
            server.pass_time(0.4 * SILENCE)
        assert answer(client) == ""


def test_silent_connections_lock_nobody_out(address: tuple[str, int]) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(address)) for _ in range(200)]
        assert is_served(address)
        assert answer(silent[0]) == ""  # the oldest had to go


def test_who_never_reads_is_dropped(server: RunningServer, address: tuple[str, int]) -> None:
    """Many requests on one connection, and no answer is taken."""
    state = server.uvicorn.server_state
    with connect(address, f"GET /static/page/words.js {HEAD}\r\n" * 4000):
        server.wait_for(lambda: any(one.unread for one in list(state.connections)))
        server.pass_time(UNREAD / 2)
        assert len(state.connections) > 0
        server.pass_time(UNREAD)
        server.wait_for(lambda: not state.connections)


FOLLOW = f"GET /api/runs/run/metrics {HEAD}\r\n"


def follows(address: tuple[str, int]) -> bool:
    """Return whether one more client may follow the curves of a run."""
    with connect(address, FOLLOW) as client:
        return client.recv(12) == b"HTTP/1.1 200"


def test_a_crowd_of_followers_does_not_pass_the_limit(server: RunningServer, address: tuple[str, int]) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(address, FOLLOW)) for _ in range(30)]
        first = [client.recv(12).decode() for client in clients]
        assert first.count("HTTP/1.1 200") == FOLLOWERS
        assert first.count("HTTP/1.1 503") == 30 - FOLLOWERS
    server.wait_for(lambda: follows(address))  # the places of those who left are free again


@pytest.mark.parametrize("size", [20_000, 60_000, 500_000])
def test_headers_are_bounded_also_if_they_come_at_once(address: tuple[str, int], size: int) -> None:
    with connect(address) as client, suppress(BrokenPipeError, ConnectionResetError):
        client.sendall(f"GET / {HEAD}".encode() + b"A: b\r\n" * (size // 6) + b"Connection: close\r\n\r\n")
        found = answer(client)
        assert found.startswith(("HTTP/1.1 431", "HTTP/1.1 400")) or not found
    assert is_served(address)


@pytest.mark.parametrize(
    "path", ["/", "/api/state", "/api/runs/run/metrics", "/api/recordings/x", "/api/recordings/x/tile", "/static/x"]
)
def test_the_head_of_any_answer_ends(address: tuple[str, int], path: str) -> None:
    found = ask(address, f"HEAD {path} {HEAD}Connection: close\r\n\r\n")
    assert found.startswith("HTTP/1.1 ")
    assert found.endswith("\r\n\r\n")


BODY = json.dumps({"run": "run", "text": "one two three"})
LEAVING = {
    "before the body": f"POST /api/translate {HEAD}Content-Type: application/json\r\nContent-Length: 99\r\n\r\n",
    "within the body": f"POST /api/translate {HEAD}Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{{",
    "within an upload": f"POST /api/recordings {HEAD}Content-Type: application/octet-stream\r\n"
    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "before the answer": f"POST /api/translate {HEAD}Content-Type: application/json\r\n"
    f"Content-Length: {len(BODY)}\r\n\r\n{BODY}",
    "within the curves": FOLLOW,
    "within the head": "GET / HT",
}


@pytest.mark.parametrize("name", LEAVING)
def test_who_leaves_makes_no_traceback(
    server: RunningServer, address: tuple[str, int], name: str, errors: list[logging.LogRecord], capfd: Any
) -> None:
    state = server.uvicorn.server_state
    for linger in (False, True):
        client = connect(address, LEAVING[name])
        if linger:  # a reset in place of a farewell
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        server.wait_for(lambda: bool(state.connections))
        client.close()
        server.wait_for(lambda: not state.connections and not state.tasks)
    assert is_served(address)
    assert [record.getMessage() for record in errors if record.exc_info or record.levelno >= logging.ERROR] == []
    assert "Traceback" not in capfd.readouterr().err


def test_who_follows_when_the_server_ends_makes_no_traceback(
    tmp_path: Path, errors: list[logging.LogRecord], capfd: Any
) -> None:
    running = RunningServer(make_run(tmp_path / "run", "plain"), Limits())
    running.thread.start()
    with connect(running.address, FOLLOW) as client:
        assert client.recv(12) == b"HTTP/1.1 200"
        running.stop()
    assert [record.getMessage() for record in errors if record.exc_info] == []
    assert "Traceback" not in capfd.readouterr().err


def test_files_are_enough_for_the_connections() -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(4 * Connection.MOST, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
