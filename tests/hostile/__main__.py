"""`python -m tests.hostile COUNT [SEED]`: give COUNT damaged files and requests to a process whose memory is measured.

Exits with 1 if one of them caused a status of 500, an exception that is not ours or a line in the terminal, or if the
memory grew by more than 256 MB. `make hostile` runs it.
"""

import re
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from tests.hostile.cases import HostileCases

GROWTH = 2**28  # bytes
SLOW = 30.0  # seconds of the processor for one case: other programs do not count
ROOM = 2**31  # bytes of addresses beyond those after the warm-up: a bomb ends with MemoryError, not with the machine


def read_memory(name: str) -> int:
    """Return a number of /proc/self/status in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found.group(1)) if found else 0


def main(count: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        hostile = HostileCases(Path(folder))
        hostile.check_parts()
        for number in range(200):  # imports and compilation take memory too, once
            run_case(hostile, number % len(hostile.kinds), Random(number))
        before = read_memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM counts from now on
        resource.setrlimit(resource.RLIMIT_AS, (read_memory("VmSize") + ROOM, resource.RLIM_INFINITY))
        failures, slowest, start = Counter[str](), (0.0, ""), time.perf_counter()
        for number in range(count):
            begun = time.process_time()
            kind, problem = run_case(hostile, number % len(hostile.kinds), Random(seed * 10**9 + number))
            slowest = max(slowest, (time.process_time() - begun, f"{kind} {number}"))
            if problem and sum(failures.values()) < 20:
                print(f"{kind} {number}: {problem}", flush=True)
            failures[kind] += bool(problem)
            if number % 1000 == 999:
                print(f"{number + 1} cases, failures {sum(failures.values())}", flush=True)
        growth = read_memory("VmHWM") - before
    seconds = time.perf_counter() - start
    print(f"{count} cases in {seconds:.0f} s, failures {sum(failures.values())} {dict(failures)}")
    print(f"slowest {slowest[0]:.2f} s ({slowest[1]}), memory grew by {growth / 2**20:.0f} MB at most")
    return int(sum(failures.values()) > 0 or growth > GROWTH or slowest[0] > SLOW)


def run_case(hostile: HostileCases, number: int, random: Random) -> tuple[str, str]:
    """Run one case; return its kind, and what was wrong with it."""
    kind = list(hostile.kinds)[number]
    hostile.shown.faults.clear()
    try:
        hostile.kinds[kind](random)
    except Exception:
        return kind, traceback.format_exc(limit=-3)
    return kind, hostile.shown.faults.pop() if hostile.shown.faults else ""


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
