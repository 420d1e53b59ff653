"""Measure one claim in this process, the peers' environment, and save it: `python -m benchmarks.worker NAME FOLDER`."""

import argparse
import os
import subprocess
from datetime import date
from pathlib import Path

import torch

from benchmarks.claim import Claim, TimeCase
from benchmarks.claims import find
from benchmarks.measurement import Scale, measure_memory_case, time_case
from benchmarks.results import ROOT, CaseResult, Result, Setting, save
from regard.cli.machine import LoadMonitor, describe_machine


def measure(name: str, scale: Scale, threads: int) -> Result:
    """Measure all cases and curves of a claim."""
    claim = find(name)
    os.environ.update(claim.environment)
    torch.set_num_threads(threads)
    load, watch = os.getloadavg()[0], LoadMonitor()
    cases = [_measure_case(name, claim, index, scale) for index in range(len(claim.cases))]
    curves = []
    if claim.growth is not None:
        # Imported here: only this claim starts from it.
        from benchmarks.growth import measure_growth

        curves = measure_growth(name, claim.growth, scale)
    setting = record_setting(threads, load, watch, quick=scale.quick or scale.tiny)
    return Result(name, claim.title, setting, cases, curves)


def record_setting(threads: int, load: float, watch: LoadMonitor, *, quick: bool) -> Setting:
    """Return the machine, its load before and during a measurement, the day and the commit."""
    today = date.today().isoformat()
    vectors = torch.backends.cpu.get_cpu_capability()
    return Setting(*describe_machine(), threads, load, watch.measure_load(), today, find_commit(), quick, vectors)


def _measure_case(name: str, claim: Claim, index: int, scale: Scale) -> CaseResult:
    case = claim.cases[index]
    return time_case(case, scale) if isinstance(case, TimeCase) else measure_memory_case(name, index, case, scale)


def find_commit() -> str:
    """Return the commit that is measured, with a plus if the code differs from it."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", "src", "benchmarks/claims", "benchmarks/contenders")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{name}+" if changed else name


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    save(measure(given.name, Scale(given.quick, given.tiny), given.threads), given.folder)


if __name__ == "__main__":
    main()
