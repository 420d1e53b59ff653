"""Stream the metrics of a run: its metrics.jsonl, followed while it grows."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from regard.datasets.bounds import get_bound
from regard.errors import RegardError, wrong
from regard.training.lock import check_free
from regard.training.points import LINE, parse_point
from regard.web.events import Event
from regard.web.limits import Limits
from regard.web.responses import busy_error
from regard.web.run_checks import resolve_inside
from regard.web.workers import ClosableStream

PAUSE = 0.5  # seconds between two reads
PART = get_bound("run folder", "metrics part")  # bytes that are read at once
LARGEST = get_bound("run folder", "metrics bytes")  # of a file that is followed


class Followers:
    """The pages that follow metrics; beyond the limit a new one is refused."""

    def __init__(self, limits: Limits) -> None:
        self.most, self.now = limits.followers, 0
        self.ended = False

    def follow(self, run: Path, start: int, plan: Mapping[str, int | None] | None = None) -> ClosableStream[Event]:
        """Return a stream of the file from byte `start` on, and then of whatever is added to it.

        It also says, at first and when that changes, whether a process trains the run, and the `plan`: where it ends.
        """
        if self.now >= self.most:
            raise busy_error("curves", f"{self.most} readers", "fewer", "close some pages", wait=5)
        path = resolve_inside(run, "metrics.jsonl", LARGEST)
        self.now += 1
        return ClosableStream(self.iterate_points(path, start, plan or {}), self.leave)

    def leave(self) -> None:
        """Count one page less."""
        self.now -= 1

    async def iterate_points(
        self, path: Path, start: int, plan: Mapping[str, int | None]
    ) -> AsyncGenerator[Event, None]:
        """Yield the points of a file as they come, until the server ends."""
        before = None
        while not self.ended:
            running, age = await asyncio.to_thread(read_activity, path)
            if running != before:
                yield Event("status", {"running": running, "age": age, **plan})
                before = running
            part = await asyncio.to_thread(read_part, path, start)
            if part is None:
                start = 0
                yield Event("again", {})  # a resumed run has cut the file back
                continue
            points, end, more = part
            if points or end != start:
                yield Event("points", {"points": points, "end": end})
            else:
                yield Event("alive", {})  # so that a client that is gone is noticed
            start = end
            await asyncio.sleep(0.0 if more else PAUSE)


def read_activity(path: Path) -> tuple[bool, float]:
    """Return whether a process trains the run of a metrics file, and how many seconds ago the file was changed."""
    try:
        check_free(path.parent)
        running = False
    except RegardError:
        running = True
    try:
        return running, max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return running, 0.0


def read_part(path: Path, start: int) -> tuple[list[dict[str, Any]], int, bool] | None:
    """Return the points from a byte on, where they end, and whether there are more; None if the file is shorter."""
    if not path.is_file():
        return [], start, False
    size = path.stat().st_size
    if size < start:
        return None
    try:
        with path.open("rb") as file:
            file.seek(start)
            content = file.read(PART)
    except OSError as error:
        raise wrong("curves", f"{path.name} ('{error.strerror}')", "a file that can be read", "check it") from None
    last = content.rfind(b"\n") + 1
    if not last and len(content) > LINE:
        last = len(content)  # no line of ours is so long: skip it
    points = [point for line in content[:last].split(b"\n") if (point := parse_point(line)) is not None]
    return points, start + last, start + len(content) < size and last > 0
