"""metrics.jsonl, followed: whole lines as they come, from the beginning again where it was cut back."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from regard.training.lock import hold_lock
from regard.training.points import parse_point
from regard.web.events import Event
from regard.web.limits import Limits
from regard.web.metrics import Followers
from regard.web.responses import RefusedError


async def wait_for_event(events: AsyncIterator[Event], name: str) -> Any:
    async for event in events:
        if event.name == name:
            return event.data
    return None


def test_lines_are_told_as_they_come(tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')

    async def follow() -> None:
        events = Followers(Limits()).follow(tmp_path, 0)
        assert (await wait_for_event(events, "points"))["points"] == [{"step": 1, "loss": 2.0}]
        with file.open("a") as more:
            more.write('ss": 1.5}\nnoise\n{"step": 3, "loss": NaN, "metrics": {"bleu": 4.0}}\n')
        data = await wait_for_event(events, "points")
        assert data["points"] == [{"step": 2, "loss": 1.5}, {"step": 3, "metrics": {"bleu": 4.0}}]
        assert data["end"] == file.stat().st_size
        file.write_text('{"step": 1, "loss": 9.0}\n')
        assert await wait_for_event(events, "again") == {}
        assert (await wait_for_event(events, "points"))["points"] == [{"step": 1, "loss": 9.0}]

    asyncio.run(follow())


def test_whether_a_run_trains_is_told(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')

    async def follow() -> None:
        events = Followers(Limits()).follow(tmp_path, 0, {"steps": 7, "epochs": None})
        first = await wait_for_event(events, "status")
        assert (first["running"], first["steps"]) == (False, 7)
        assert first["age"] < 60
        with hold_lock(tmp_path):
            assert (await wait_for_event(events, "status"))["running"] is True
        assert (await wait_for_event(events, "status"))["running"] is False

    asyncio.run(follow())


def test_a_run_without_metrics_is_waited_for(tmp_path: Path) -> None:
    async def follow() -> None:
        events = Followers(Limits()).follow(tmp_path, 0)
        assert await wait_for_event(events, "alive") == {}
        (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n')
        assert (await wait_for_event(events, "points"))["points"] == [{"step": 1}]

    asyncio.run(follow())


def test_too_many_readers_are_told_to_wait(tmp_path: Path) -> None:
    async def follow() -> None:
        followers = Followers(Limits(followers=1))
        first = followers.follow(tmp_path, 0)
        await anext(first)
        with pytest.raises(RefusedError, match="curves: got 1 readers, expected fewer; fix: close some pages"):
            followers.follow(tmp_path, 0)
        await first.aclose()  # type: ignore[attr-defined]
        await anext(followers.follow(tmp_path, 0))

    asyncio.run(follow())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"loss": 1}',
        b'{"step": "1"}',
        b"\xff",
        b"{" * 60_000,
        b"[" * 60_000,
        b'{"step": 1' + b" " * 70_000,
    ],
    ids=["empty", "one", "no-step", "text", "bytes", "braces", "brackets", "long"],
)
def test_what_is_no_point_is_left_out(line: bytes) -> None:
    assert parse_point(line) is None


def test_names_of_metrics_are_few_and_short() -> None:
    point = parse_point(json.dumps({"step": 1, "metrics": {"m" * 99 + str(n): n for n in range(99)}}).encode())
    assert point is not None
    assert all(len(name) <= 40 for name in point["metrics"])
