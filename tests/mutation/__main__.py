"""`python -m tests.mutation --count 150`: change one line of a copy at a time and run the tests that should notice."""

import argparse
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutation.coverage import TIMED, list_files, list_tests
from tests.mutation.mutants import Mutant, list_mutants

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).parent / "equivalent.json"
GOAL = 0.98
NO_TESTS = 5  # pytest's exit code for a file without tests
HANGS = 240  # seconds; no test of an unchanged tree takes as long


class Outcome(NamedTuple):
    """The result of the tests for one mutant; None if time was up before one failed or all had passed."""

    mutant: Mutant
    noticed: bool | None
    by: str
    seconds: float


def choose_mutants(count: int, seed: int, only: str) -> list[Mutant]:
    """Return `count` mutants, the same for the same seed, without those that are known to change no result."""
    known = tuple(entry["change"] for entry in json.loads(EQUIVALENT.read_text()))
    sources = {file: (ROOT / "src/regard" / file).read_text() for file in list_files(ROOT)}
    pool = [mutant for file, source in sources.items() for mutant in list_mutants(file, source)]
    pool = [mutant for mutant in pool if not f"{mutant.path}: {mutant.before} → {mutant.after}".startswith(known)]
    print(f"{len(pool):,} possible changes in {len({mutant.path for mutant in pool})} files")
    random.Random(seed).shuffle(pool)
    return [mutant for mutant in pool if mutant.path.startswith(only)][:count]


def copy_tree(folder: Path) -> Path:
    """Copy the files that git knows, so that the originals are never changed."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def run_tests(folder: Path, tests: Sequence[str], limit: float) -> tuple[bool | None, str]:
    """Return whether a test failed, and which. A test that does not end has failed; many that are slow have not."""
    command = [sys.executable, "-m", "pytest", "-n0", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
    command += [f"--timeout={HANGS}", "--timeout-method=thread", *(f"--ignore={test}" for test in TIMED)]
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'src'}", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"{limit:.0f} s were not enough"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    reason = (
        f"a test hangs for {HANGS} s" if "+ Timeout +" in done.stdout + done.stderr else f"exit code {done.returncode}"
    )
    return done.returncode not in (0, NO_TESTS), failed[0].split(" - ")[0] if failed else reason


def try_mutant(mutant: Mutant, folder: Path, limit: float) -> Outcome:
    """Change the file, run the tests, change it back."""
    path, start = folder / "src/regard" / mutant.path, time.monotonic()
    original, noticed, by = path.read_text(), None, ""
    path.write_text(mutant.source)
    try:
        for tests in list_tests(folder, mutant.path):
            noticed, by = run_tests(folder, tests, limit)
            if noticed is not False:
                break
    finally:
        path.write_text(original)
    return Outcome(mutant, noticed, by, time.monotonic() - start)


def try_all(mutants: Sequence[Mutant], workers: int, limit: float) -> list[Outcome]:
    """Try all mutants, each worker in a copy of its own; after Ctrl-C return the outcomes so far."""
    outcomes: list[Outcome] = []
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(workers) as pool:
        folders: queue.Queue[Path] = queue.Queue()
        for index in range(workers):
            folders.put(copy_tree(Path(temporary) / str(index)))

        def try_one(mutant: Mutant) -> None:
            if stop.is_set():
                return
            folder = folders.get()
            try:
                outcomes.append(try_mutant(mutant, folder, limit))
            finally:
                folders.put(folder)
            print_outcome(outcomes[-1], len(outcomes), len(mutants))

        try:
            list(pool.map(try_one, mutants))
        except KeyboardInterrupt:
            stop.set()
            print("stopped: waiting for the tests that run")
    return outcomes


def print_outcome(outcome: Outcome, done: int, count: int) -> None:
    """Print one line for a mutant, with its diff if no test noticed it."""
    word = {True: "noticed ", False: "UNNOTICED", None: "undecided"}[outcome.noticed]
    print(f"{done:4}/{count} {word} {outcome.seconds:4.0f} s  {outcome.mutant.name}  [{outcome.by}]", flush=True)
    if outcome.noticed is not True:
        print(outcome.mutant.diff((ROOT / "src/regard" / outcome.mutant.path).read_text()), flush=True)


def main() -> int:
    """Read the command line, try the mutants, write and print the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for the tests of one mutant")
    parser.add_argument("--only", default="", help="the beginning of the paths to change, such as models/search")
    parser.add_argument("--result", type=Path, default=ROOT / "build/mutation.json")
    given = parser.parse_args()
    mutants = choose_mutants(given.count, given.seed, given.only)
    outcomes = try_all(mutants, given.workers, given.limit)
    decided = [outcome.noticed for outcome in outcomes if outcome.noticed is not None]
    share = sum(decided) / max(1, len(decided))
    given.result.parent.mkdir(parents=True, exist_ok=True)
    entries = [{"change": o.mutant.name, "line": o.mutant.line, "noticed": o.noticed, "by": o.by} for o in outcomes]
    given.result.write_text(json.dumps({"seed": given.seed, "share": share, "mutants": entries}, indent=1) + "\n")
    late = f", {len(outcomes) - len(decided)} undecided" if len(decided) < len(outcomes) else ""
    print(f"{sum(decided)} of {len(decided)} noticed{late}: {share:.1%} (goal {GOAL:.0%}); {given.result}")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
