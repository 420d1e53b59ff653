"""Work beside the event loop: bounded, timed, and over when the reader leaves."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tiny_runs import LIMITS, make_run

from regard.inspect.display import parts
from regard.inspect.recording import Difference, FactoredMap, Factors, Recording, Sketch
from regard.web.limits import Limits
from regard.web.responses import HANDLERS, RefusedError, SafeJsonResponse
from regard.web.routes import Routes
from regard.web.runs import Run, Runs
from regard.web.store import Files
from regard.web.workers import Ticket, Workers


async def wait_until_idle(workers: Workers) -> None:
    """Wait until no worker is busy, for ever if one always is."""
    while workers.busy:
        await asyncio.sleep(0.01)


def test_more_than_the_limit_is_told_to_come_back() -> None:
    async def ask() -> None:
        workers, gate = Workers(Limits(workers=1, waiting=2)), threading.Event()
        waiting = [asyncio.create_task(workers.run(lambda ticket: gate.wait())) for _ in range(3)]
        while workers.busy < 3:
            await asyncio.sleep(0.01)
        with pytest.raises(RefusedError) as refused:
            await workers.run(lambda ticket: None)
        expected = "server: got more than 3 requests at once, expected fewer; fix: try again in a moment"
        assert (str(refused.value), refused.value.status, refused.value.wait) == (expected, 503, 1)
        gate.set()
        assert await asyncio.gather(*waiting) == [True] * 3
        await wait_until_idle(workers)
        assert await workers.run(lambda ticket: 7) == 7
        workers.close()

    asyncio.run(ask())


def test_the_event_loop_goes_on_while_a_model_works() -> None:
    async def ask() -> None:
        workers, gate = Workers(Limits(workers=1)), threading.Event()
        task = asyncio.create_task(workers.run(lambda ticket: gate.wait()))
        for _ in range(10):
            await asyncio.sleep(0.01)
            assert not task.done()
        gate.set()
        assert await task is True
        workers.close()

    asyncio.run(ask())


def test_items_come_as_they_are_found_and_stop_when_the_reader_leaves() -> None:
    made: list[int] = []

    def work(ticket: Ticket) -> Iterator[int]:
        for number in range(100_000):  # nobody would wait for all of them
            made.append(number)
            yield number
            time.sleep(0.05)

    async def ask() -> None:
        workers = Workers(Limits(workers=1))
        items = workers.stream(work)
        assert [await anext(items) for _ in range(3)] == [0, 1, 2]
        await items.aclose()  # type: ignore[attr-defined]
        await wait_until_idle(workers)
        assert 3 <= len(made) < 100_000
        workers.close()

    asyncio.run(ask())


def test_who_leaves_while_waiting_is_never_computed() -> None:
    computed: list[int] = []

    async def ask() -> None:
        workers, gate = Workers(Limits(workers=1)), threading.Event()
        first = asyncio.create_task(workers.run(lambda ticket: gate.wait()))
        left = asyncio.create_task(workers.run(lambda ticket: computed.append(1)))
        await asyncio.sleep(0.05)
        left.cancel()
        await asyncio.sleep(0.05)
        gate.set()
        await first
        await wait_until_idle(workers)
        assert computed == []
        workers.close()

    asyncio.run(ask())


def test_an_answer_that_takes_too_long_is_a_sentence() -> None:
    def work(ticket: Ticket) -> Iterator[int]:
        while True:
            ticket.check()
            yield 1
            time.sleep(0.01)

    async def ask() -> None:
        workers = Workers(Limits(workers=1, seconds=0.1))
        with pytest.raises(RefusedError, match=r"time: got more than 0\.1 s, expected an answer within them; fix: ask"):
            async for _ in workers.stream(work):
                pass
        workers.close()

    asyncio.run(ask())


def test_a_fault_in_the_middle_reaches_the_reader() -> None:
    def work(ticket: Ticket) -> Iterator[int]:
        yield 1
        raise KeyError("x")

    async def ask() -> None:
        workers = Workers(Limits(workers=1))
        items = workers.stream(work)
        assert await anext(items) == 1
        with pytest.raises(KeyError):
            await anext(items)
        workers.close()

    asyncio.run(ask())


def test_limits_are_more_than_nothing() -> None:
    with pytest.raises(ValueError, match="workers: got 0, expected more than 0; fix: leave it out for the usual limit"):
        Limits(workers=0)


def make_recording(sites: int) -> Recording:
    return Recording.from_weights({f"site {number}": torch.eye(2) for number in range(sites)})


@pytest.mark.parametrize("path", ["/api/state", "/api/recordings/{name}", "/api/recordings/{name}/labels?site=0"])
def test_what_is_read_and_written_for_an_answer_is_read_beside_the_event_loop(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes = Routes(Runs({"run": make_run(tmp_path / "run", "plain")}, LIMITS), Files({}, 1), LIMITS)
    name, threads = routes.store.add("", make_recording(1)), set()

    def note_thread(function: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            threads.add(threading.current_thread().name)
            return function(*arguments, **more)

        return call

    monkeypatch.setattr(Run, "describe", note_thread(Run.describe))
    monkeypatch.setattr(parts, "list_sites", note_thread(parts.list_sites))
    monkeypatch.setattr(SafeJsonResponse, "render", note_thread(SafeJsonResponse.render))
    with TestClient(Starlette(routes=routes.list_routes())) as client:
        assert client.get(path.format(name=name)).status_code == 200
    routes.workers.close()
    assert threads
    assert all(thread.startswith("regard-web") for thread in threads)


def make_claiming(heads: int, size: int) -> Recording:
    """Return a recording of few bytes whose tiles are many weights, without an overview."""
    table = torch.ones(heads, size)
    sketch = Sketch(table, table, torch.ones(heads, size, 1), torch.zeros(heads, size, 1, dtype=torch.long))
    seen = FactoredMap(sketch, Factors(torch.ones(heads, size, 1), torch.ones(1, size, 1), table))
    return Recording({"factored": seen, "difference": Difference(seen, seen)})


@pytest.mark.parametrize(("part", "site"), [("tile", 0), ("tile", 1), ("rows", 1)])
def test_tiles_end_with_their_time(part: str, site: int) -> None:
    limits = Limits(seconds=0.02)
    routes = Routes(Runs({}, limits), Files({}, 1), limits)
    name = routes.store.add("", make_claiming(2, 2**14))
    tile = {"up": 6, "across": 6, "row": 0, "column": 0} if part == "tile" else {}
    with TestClient(Starlette(routes=routes.list_routes(), exception_handlers=HANDLERS)) as client:
        answer = client.get(f"/api/recordings/{name}/{part}", params={"site": site, "head": 0} | tile)
    routes.workers.close()
    assert answer.status_code == 503
    assert answer.json()["error"].startswith("time: got more than 0.02 s, expected an answer within them; fix: ask")


def test_a_sketch_of_many_heads_ends_with_its_time() -> None:
    sketch = next(iter(make_claiming(5, 3).values())).sketch  # type: ignore[attr-defined]
    turns: list[int] = []
    sketch.downsample(None, size=(3, 3), check_interrupt=lambda: turns.append(1))
    assert len(turns) == 5
