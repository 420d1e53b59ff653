"""Describe the machine of a measurement: the processor, the versions, and the load of other processes."""

import contextlib
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

QUIET = 0.5  # cores that others may keep busy before a time is not to be trusted


class Machine(NamedTuple):
    """The machine on which something was measured."""

    processor: str
    cores: int
    system: str
    python: str
    torch: str


class LoadMonitor:
    """Measures how many cores other processes keep busy from now on, without this process and its children."""

    def __init__(self) -> None:
        self._start = _take_snapshot()

    def measure_load(self) -> float:
        """Return the mean since the start; the load average if the system has no /proc/stat."""
        now = _take_snapshot()
        if now.busy is None or self._start.busy is None:
            return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        passed = max(now.wall - self._start.wall, 1e-3)
        foreign = (now.busy - self._start.busy) - (now.own - self._start.own)
        return max(0.0, foreign / passed)


def measure_other_load(seconds: float = 1.0) -> float:
    """Return how many cores other processes keep busy while we wait."""
    watch = LoadMonitor()
    time.sleep(seconds)
    return watch.measure_load()


def describe_machine() -> Machine:
    """Return a description of this machine, without its name."""
    system = f"{platform.system()} {platform.machine()}"
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = "none"
    return Machine(_read_processor(), _count_cores(), system, platform.python_version(), torch)


class _Snapshot(NamedTuple):
    wall: float
    busy: float | None
    own: float


def _take_snapshot() -> _Snapshot:
    own = os.times()
    mine = own.user + own.system + own.children_user + own.children_system
    return _Snapshot(time.monotonic(), _read_busy_seconds(), mine)


def _read_busy_seconds() -> float | None:
    """Return the processor seconds of all processes since the system started."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        words = Path("/proc/stat").read_text().splitlines()[0].split()
        user, nice, system, _idle, _waiting, hard, soft, stolen = map(int, words[1:9])
        return (user + nice + system + hard + soft + stolen) / os.sysconf("SC_CLK_TCK")
    return None


def _read_processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
