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

from benchmarks.claim import Build, Timed
from benchmarks.claims import find
from benchmarks.measuring import stepped

ROOT = Path(__file__).parent.parent
MEGABYTE = 2**20


class Wanted(NamedTuple):
    """Which contender of which case to weigh, or which curve at which length; `limit` in megabytes, or none."""

    claim: str
    case: int = 0
    contender: str = ""
    length: int = 0
    tiny: bool = False
    limit: int = 0


class Weight(NamedTuple):
    """Megabytes beyond what was resident before; `over` where the limit stopped it."""

    megabytes: float
    over: bool


def weigh(wanted: Wanted) -> Weight:
    """Ask a fresh process."""
    command = [sys.executable, "-m", "benchmarks.memory", json.dumps(wanted._asdict())]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return Weight(**json.loads(done.stdout.splitlines()[-1]))


def main(argument: str) -> None:
    """Be that process."""
    wanted = Wanted(**json.loads(argument))
    os.environ.update(find(wanted.claim).environment)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    print(json.dumps(_weighed(wanted)._asdict()))


def _weighed(wanted: Wanted) -> Weight:
    build, problem, tiny, backward = _case(wanted)
    stepped(build(tiny), backward=backward)()
    run = stepped(build(problem), backward=backward)
    gc.collect()
    _trim()
    if wanted.limit:
        ceiling = _status("VmSize") + wanted.limit * MEGABYTE
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, ceiling))
    before = _reset()
    try:
        run()
    except (MemoryError, RuntimeError) as error:
        if not wanted.limit or "alloc" not in str(error).lower() + "alloc" * isinstance(error, MemoryError):
            raise
        return Weight(wanted.limit, over=True)
    return Weight((_peak() - before) / MEGABYTE, over=False)


def _case(wanted: Wanted) -> tuple[Build, object, object, bool]:  # type: ignore[type-arg]
    claim = find(wanted.claim)
    if claim.growth is not None:
        curve = claim.growth.curves[wanted.contender]
        return curve.build, wanted.length, claim.growth.shortest, curve.backward
    case = claim.cases[wanted.case]
    if isinstance(case, Timed):
        raise TypeError(f"{wanted.claim}, case {wanted.case} is timed, not weighed")
    problem = case.tiny if wanted.tiny else case.problem
    return case.builds()[wanted.contender], problem, case.tiny, case.backward


def _reset() -> int:
    """Set the mark to what is resident now, and say how much that is."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    return _peak()  # a system without it: the mark so far, which is at least as much


def _peak() -> int:
    with suppress(OSError):
        return _status("VmHWM")
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"the system does not tell {name}")


def _trim() -> None:
    """Give back what warming up left in the allocator."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


if __name__ == "__main__":
    main(sys.argv[1])
