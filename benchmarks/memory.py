"""Peak memory of one call, in a process of its own: nothing that ran before can hide it.

`python -m benchmarks.memory` is that process. It warms up at a tiny size, sets the system's high-water mark back to
what is resident now, runs once, and prints how far the mark rose.
"""

import ctypes
import gc
import json
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.claim import Build, TimeCase
from benchmarks.claims import find
from benchmarks.measurement import build_call

ROOT = Path(__file__).parent.parent
MEGABYTE = 2**20


class MemoryRequest(NamedTuple):
    """Which contender of which case to weigh, or which curve at which length; `limit` in megabytes, or none."""

    claim: str
    case: int = 0
    contender: str = ""
    length: int = 0
    tiny: bool = False
    limit: int = 0


class MemoryUse(NamedTuple):
    """Megabytes beyond what was resident before; `over` where the limit stopped it."""

    megabytes: float
    over: bool


def measure_memory(wanted: MemoryRequest) -> MemoryUse:
    """Ask a fresh process."""
    command = [sys.executable, "-m", "benchmarks.memory", json.dumps(wanted._asdict())]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return MemoryUse(**json.loads(done.stdout.splitlines()[-1]))


def main(argument: str) -> None:
    """Be that process."""
    wanted = MemoryRequest(**json.loads(argument))
    os.environ.update(find(wanted.claim).environment)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    print(json.dumps(_measure_peak(wanted)._asdict()))


def _measure_peak(wanted: MemoryRequest) -> MemoryUse:
    build, problem, tiny, backward = _find_case(wanted)
    build_call(build(tiny), backward=backward)()
    run = build_call(build(problem), backward=backward)
    gc.collect()
    _trim_allocator()
    if wanted.limit:
        ceiling = _read_status("VmSize") + wanted.limit * MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, ceiling))
    before = _reset_peak()
    try:
        run()
    except (MemoryError, RuntimeError) as error:
        if not wanted.limit or "alloc" not in str(error).lower() + "alloc" * isinstance(error, MemoryError):
            raise
        return MemoryUse(wanted.limit, over=True)
    return MemoryUse((_read_peak() - before) / MEGABYTE, over=False)


def _find_case(wanted: MemoryRequest) -> tuple[Build, object, object, bool]:  # type: ignore[type-arg]
    claim = find(wanted.claim)
    if claim.growth is not None:
        curve = claim.growth.curves[wanted.contender]
        return curve.build, wanted.length, claim.growth.shortest, curve.backward
    case = claim.cases[wanted.case]
    if isinstance(case, TimeCase):
        raise TypeError(f"{wanted.claim}, case {wanted.case} is timed, not weighed")
    problem = case.tiny if wanted.tiny else case.problem
    return case.list_builds()[wanted.contender], problem, case.tiny, case.backward


def _reset_peak() -> int:
    """Set the mark to what is resident now, and say how much that is."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return _read_status("VmRSS")
    return _read_peak()  # a system without it: the mark so far, which is at least as much


def _read_peak() -> int:
    with suppress(OSError):
        return _read_status("VmHWM")
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def _read_status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"the system does not tell {name}")


def _trim_allocator() -> None:
    """Give back what warming up left in the allocator."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


if __name__ == "__main__":
    main(sys.argv[1])
