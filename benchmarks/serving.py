"""Many clients of one server: `python -m benchmarks.serving RUN [--clients 200] [--seconds 60]`. On this machine only.

Each client asks for a translation, reads all of it, and asks again; one that is told to come back waits a second.
Any answer but these two is a failure.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.results import ASIDE, FOLDER, ROOT, CaseResult, Check, Entry, Result, save
from benchmarks.worker import record_setting
from regard.cli.machine import LoadMonitor
from regard.compute.timing import summarize

GROWTH = 64.0  # megabytes that a server may gain after its first tenth of the time
PAGE = 2**20


@dataclass
class ClientLog:
    """What all clients have seen."""

    seconds: list[float] = field(default_factory=list)  # of whole answers
    statuses: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, float]] = field(default_factory=list)  # when, and megabytes of the server

    @property
    def failures(self) -> int:
        return sum(count for status, count in self.statuses.items() if status not in ("200", "503"))


async def send_request(port: int, body: bytes) -> tuple[str, bytes]:
    """Send one request on a connection of its own; return its status, and all of its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /api/translate HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()
    answer = await reader.read(-1)
    writer.close()
    return answer[9:12].decode(), answer


async def run_client(port: int, body: bytes, end: float, seen: ClientLog) -> None:
    """Run one of many clients, until the end."""
    while (start := time.monotonic()) < end:
        try:
            status, answer = await send_request(port, body)
        except OSError as error:
            status, answer = type(error).__name__, b""
        if status == "200" and b"event: done" not in answer:
            status = "unfinished"
        seen.statuses[status] += 1
        if status == "200":
            seen.seconds.append(time.monotonic() - start)
        else:
            await asyncio.sleep(1.0)


async def track_memory(process: int, end: float, seen: ClientLog) -> None:
    """Read the memory of the server ten times a second."""
    begin = time.monotonic()
    while (now := time.monotonic()) < end:
        fields = Path(f"/proc/{process}/statm").read_text().split()
        seen.memory.append((now - begin, int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / PAGE))
        await asyncio.sleep(0.1)


async def run_clients(port: int, process: int, given: argparse.Namespace) -> ClientLog:
    """Run all clients at once."""
    seen = ClientLog()
    body = json.dumps({"run": Path(given.run).resolve().name, "text": given.text, "beam": given.beam}).encode()
    await send_request(port, body)  # opens the model
    end = time.monotonic() + given.seconds
    clients = [run_client(port, body, end, seen) for _ in range(given.clients)]
    await asyncio.gather(*clients, track_memory(process, end, seen))
    return seen


def build_result(seen: ClientLog, given: argparse.Namespace, watch: LoadMonitor, load: float) -> Result:
    """Return the figures in the form that all measurements have."""
    settled = [megabytes for when, megabytes in seen.memory if when > given.seconds / 10]
    growth = max(0.0, settled[-1] - settled[0])
    answered = summarize(seen.seconds)
    entry = Entry("answered", answered.median, answered.low, answered.high, len(seen.seconds), None, False)
    check = Check("of growth", growth, growth, growth, "most", GROWTH, "MB")
    counts = {f"status {status}": str(count) for status, count in sorted(seen.statuses.items())}
    case = CaseResult(
        f"{given.clients} clients for {given.seconds:g} s, beam {given.beam}", "s", [entry], [check], counts
    )
    quick = given.seconds < 60
    setting = record_setting(given.threads, load, watch, quick=quick)
    return Result("serving", "Translations served to many clients at once", setting, [case])


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("run", help="a run folder of a translator")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--text", default="a man in a red shirt is playing the guitar .")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main() -> int:
    """Serve, ask, save; 1 where an answer was neither a translation nor the limit's, or where memory grew."""
    given = parse()
    command = [sys.executable, "-m", "regard", "serve", given.run, "--port", "0", "--threads", str(given.threads)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        line = server.stdout.readline() if server.stdout else ""
        port = int(re.findall(r":(\d+)/", line)[0])
        load, watch = os.getloadavg()[0], LoadMonitor()
        seen = asyncio.run(run_clients(port, server.pid, given))
        found = build_result(seen, given, watch, load)
    finally:
        server.terminate()
        server.wait(20)
    path = save(found, FOLDER if given.seconds >= 60 else ASIDE)
    [case] = found.cases
    print(
        f"{case.name}: median {case.entries[0].median:.2f} s, {dict(seen.statuses)}, {case.checks[0].value:.1f} MB more"
    )
    print(path)
    return 0 if seen.failures == 0 and found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
