"""What is kept and what arrives is counted, all of it."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient
from tiny_runs import LIMITS

from regard.inspect.recording import Recording
from regard.web.app import build_app, format_url
from regard.web.responses import RefusedError
from regard.web.security import Access, Guard
from regard.web.store import Store


def make_labelled(letters: int) -> Recording:
    recording = Recording.from_weights({"a": torch.eye(2)}, metadata={"large": "x" * 1000})
    recording.label(["x" * letters, "b"], ["c", "d"])
    recording.notes += ["a note"] * 200
    return recording


def test_text_counts_as_what_is_kept() -> None:
    store = Store(100_000)
    names = [store.add("", make_labelled(9_000)) for _ in range(3)]
    assert list(store.recordings) == names[1:]
    assert 80_000 < store.bytes < 100_000
    with pytest.raises(RefusedError, match=r"^recording: got \d+,\d+ bytes, expected at most 100,000; fix: observe"):
        store.add("", make_labelled(30_000))


def test_what_the_page_does_not_show_is_not_kept() -> None:
    store = Store(100_000)
    kept = store.get(store.add("", make_labelled(1))).recording
    assert (kept.metadata, len(kept.notes)) == ({}, 100)


def test_few_uploads_arrive_at_once(place: Path) -> None:
    app = build_app([place / "attention.safetensors"], limits=LIMITS)

    async def send_uploads() -> None:
        gate, begun = asyncio.Event(), asyncio.Semaphore(0)
        slow = [asyncio.create_task(post_upload(app, gate, begun)) for _ in range(LIMITS.workers)]
        for _ in slow:
            await begun.acquire()
        full = await asyncio.wait_for(post_upload(app, gate), 600)
        assert full["status"] == 503
        assert (b"retry-after", b"1") in full["headers"]
        gate.set()
        assert [one["status"] for one in await asyncio.gather(*slow)] == [400] * LIMITS.workers
        assert (await post_upload(app, gate))["status"] == 400  # there is room again

    asyncio.run(send_uploads())


async def post_upload(app: Guard, gate: asyncio.Event, begun: asyncio.Semaphore | None = None) -> dict[str, Any]:
    """Return the head of the answer to an upload whose body is sent when the gate opens."""
    headers = [(b"host", b"localhost"), (b"content-type", b"application/octet-stream")]
    path = "/api/recordings"
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"scheme": "http", "headers": headers, "root_path": "", "http_version": "1.1"}
    answers: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if begun is not None:
            begun.release()
        await gate.wait()
        return {"type": "http.request", "body": b"no recording", "more_body": False}

    async def send(message: Any) -> None:
        answers.append(message)

    await app(scope, receive, send)
    return answers[0]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "Example.org"])
def test_the_address_that_is_printed_is_served(place: Path, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "My-Machine")
    access = Access.from_host(host, ["Proxy.Example"], token="right")
    printed = format_url(host, 8000, None)
    for address in (printed, "http://proxy.example/"):
        with TestClient(build_app([place / "plain"], access), base_url=address) as client:
            assert client.get("/api/state", headers={"Authorization": "Bearer right"}).status_code == 200
