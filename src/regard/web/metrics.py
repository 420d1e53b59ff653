"""The curves of a run: its metrics.jsonl, followed while it grows."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from regard.bounds import most, parse_json
from regard.errors import sentence, wrong
from regard.web.answers import RefusedError
from regard.web.events import Event
from regard.web.limits import Limits
from regard.web.vetting import inside
from regard.web.work import Closing

PAUSE = 0.5  # seconds between two looks
PART = most("run folder", "metrics part")  # bytes that are read at once
LINE = most("run folder", "metrics line")  # bytes of a line that can be one of ours
LARGEST = most("run folder", "metrics bytes")  # of a file that is followed
NAMES = ("step", "epoch", "loss", "tokens", "seconds", "rate", "norm", "best")


class Followers:
    """How many pages follow; beyond the limit a new one is told to wait."""

    def __init__(self, limits: Limits) -> None:
        self.most, self.now = limits.followers, 0
        self.ended = False

    def follow(self, run: Path, start: int) -> Closing[Event]:
        """What the file says from a byte on, and then whatever is added to it. The reader counts from now on."""
        if self.now >= self.most:
            fix = "close some pages"
            raise RefusedError(503, sentence("curves", f"{self.most} readers", "fewer", fix), wait=5)
        path = inside(run, "metrics.jsonl", LARGEST)
        self.now += 1
        return Closing(self.following(path, start), self.leave)

    def leave(self) -> None:
        self.now -= 1

    async def following(self, path: Path, start: int) -> AsyncGenerator[Event, None]:
        """The points of a file as they come, until the server ends."""
        while not self.ended:
            part = await asyncio.to_thread(read_part, path, start)
            if part is None:
                start = 0
                yield Event("again", {})  # a resumption has cut it back
                continue
            points, end, more = part
            if points or end != start:
                yield Event("points", {"points": points, "end": end})
            else:
                yield Event("alive", {})  # so that a reader who left is noticed
            start = end
            await asyncio.sleep(0.0 if more else PAUSE)


def read_part(path: Path, start: int) -> tuple[list[dict[str, Any]], int, bool] | None:
    """The whole lines from a byte on, where they end, and whether more are waiting; None where the file is shorter."""
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
        last = len(content)  # no line of ours is so long: go on behind it
    points = [point for line in content[:last].split(b"\n") if (point := point_of(line)) is not None]
    return points, start + last, start + len(content) < size and last > 0


def point_of(line: bytes) -> dict[str, Any] | None:
    """What a line says, in the few numbers that are drawn; None where it is none of ours.

    >>> point_of(b'{"event": "stepped", "step": 3, "loss": 1.5, "other": "x"}')
    {'step': 3, 'loss': 1.5}
    """
    try:
        values = parse_json(line) if 0 < len(line) <= LINE else None
    except ValueError:
        return None
    if not isinstance(values, dict) or not isinstance(values.get("step"), int):
        return None
    metrics = values.get("metrics")
    held = {name: value for name, value in values.items() if name in NAMES and plain(value)}
    if isinstance(metrics, dict):
        held["metrics"] = {str(name)[:40]: value for name, value in list(metrics.items())[:40] if plain(value)}
    return held


def plain(value: object) -> bool:
    """A number that JSON can say; nan and infinities of a run that failed are left out."""
    return isinstance(value, int | float) and value == value and abs(value) != float("inf")
