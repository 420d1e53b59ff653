"""A real server, and clients that say nothing, say it slowly, never read, leave, or come in crowds."""

import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import make_run

from regard.web.app import build_app, build_server, open_socket
from regard.web.connections import Connection, raise_file_limit
from regard.web.limits import Limits

HEAD = "HTTP/1.1\r\nHost: localhost\r\n"
FOLLOWERS = 5


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of a server in a thread, with little patience."""
    run = make_run(tmp_path_factory.mktemp("served") / "run", "plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "SILENCE", 0.6)
        patch.setattr(Connection, "UNREAD", 0.6)
        patch.setattr(Connection, "MOST", 40)
        connection = open_socket("127.0.0.1", 0)
        running = build_server(build_app([run], limits=Limits(followers=FOLLOWERS, patience=2.0)))
        thread = threading.Thread(target=running.run, args=([connection],), daemon=True)
        thread.start()
        yield connection.getsockname()[:2]
        running.should_exit = True
        thread.join(600)
        assert not thread.is_alive()


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


def test_silence_ends(address: tuple[str, int]) -> None:
    with connect(address) as nothing, connect(address, f"GET / {HEAD}") as half:
        start = time.monotonic()
        assert (answer(nothing), answer(half)) == ("", "")
        assert time.monotonic() - start > 0.3


def test_a_head_that_comes_byte_by_byte_has_the_same_time(address: tuple[str, int]) -> None:
    """Each byte stops the clock of uvicorn; ours goes on until the head is whole. Also behind a request that was."""
    for before in ("", f"GET /api/nothing {HEAD}\r\n"):
        closed = pytest.raises((BrokenPipeError, ConnectionResetError))
        with connect(address, before) as client, closed:
            for _ in range(5000):
                client.sendall(b"G")
                time.sleep(0.1)


def test_silent_connections_lock_nobody_out(address: tuple[str, int]) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(address)) for _ in range(200)]
        assert is_served(address)
        assert answer(silent[0]) == ""  # the oldest had to go


def test_who_never_reads_is_dropped(address: tuple[str, int]) -> None:
    """Many requests on one connection, and no answer is taken."""
    with connect(address) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        question = f"GET /static/page/words.js {HEAD}\r\n".encode() * 200
        with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012
            for _ in range(10_000):
                client.sendall(question)
                time.sleep(0.05)
    assert is_served(address)


def test_a_crowd_of_followers_does_not_pass_the_limit(address: tuple[str, int]) -> None:
    with ExitStack() as stack:
        question = f"GET /api/runs/run/metrics {HEAD}\r\n"
        clients = [stack.enter_context(connect(address, question)) for _ in range(30)]
        first = [client.recv(12).decode() for client in clients]
        assert first.count("HTTP/1.1 200") == FOLLOWERS
        assert first.count("HTTP/1.1 503") == 30 - FOLLOWERS
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:  # the places of those who left are free again
        with connect(address, question) as client:
            if client.recv(12) == b"HTTP/1.1 200":
                return
        time.sleep(0.2)
    pytest.fail("nobody can follow any more")


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
    "within the curves": f"GET /api/runs/run/metrics {HEAD}\r\n",
    "within the head": "GET / HT",
}


@pytest.mark.parametrize("name", LEAVING)
def test_who_leaves_makes_no_traceback(
    address: tuple[str, int], name: str, errors: list[logging.LogRecord], capfd: Any
) -> None:
    for linger in (False, True):
        client = connect(address, LEAVING[name])
        if linger:  # a reset in place of a farewell
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        time.sleep(0.05)
        client.close()
    time.sleep(0.4)
    assert is_served(address)
    assert [record.getMessage() for record in errors if record.exc_info or record.levelno >= logging.ERROR] == []
    assert "Traceback" not in capfd.readouterr().err


def test_who_follows_when_the_server_ends_makes_no_traceback(
    tmp_path: Path, errors: list[logging.LogRecord], capfd: Any
) -> None:
    connection = open_socket("127.0.0.1", 0)
    running = build_server(build_app([make_run(tmp_path / "run", "plain")]))
    thread = threading.Thread(target=running.run, args=([connection],), daemon=True)
    thread.start()
    address = connection.getsockname()[:2]
    with connect(address, f"GET /api/runs/run/metrics {HEAD}\r\n") as client:
        assert client.recv(12) == b"HTTP/1.1 200"
        running.should_exit = True
        thread.join(600)
    assert not thread.is_alive()
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
