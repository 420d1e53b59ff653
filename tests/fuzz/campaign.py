"""Trials in a process of their own, one after the other, and what came of them."""

import hashlib
import json
import multiprocessing
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from regard.compute.kernels import native
from tests.fuzz.generator import draw_trial
from tests.fuzz.properties import check_trial
from tests.fuzz.script import write_script
from tests.fuzz.shrinker import remove_numbers, shrink
from tests.fuzz.trial import Failure, Trial

STRIDE = 10_000_000  # trials of one seed
SHRINKS = 8  # failures of one kind that are still shrunk
SILENCE = 900.0  # seconds after which a trial hangs; a starved machine takes minutes for the largest


def run_worker(connection: Connection, first: int, without: frozenset[str]) -> None:
    """Check one trial after the other, in a process of its own: a trial that ends the process is a finding too."""
    torch.set_num_threads(1)
    native.load_library()
    seen: Counter[object] = Counter()
    for seed in range(first, first + STRIDE):
        connection.send(("at", seed, None))
        trial = draw_trial(seed, without)
        failure = check_trial(trial)
        if failure is None:
            continue
        kind = failure.property, trial.transform, remove_numbers(failure.message)
        seen[kind] += 1
        if seen[kind] <= SHRINKS:
            trial, failure = shrink(trial, failure)
        connection.send(("found", trial.write(), tuple(failure)))


def classify(trial: Trial, failure: Failure) -> tuple[object, ...]:
    """Return what two failures have in common if they are probably one defect."""
    if failure.property in ("raises", "ends the process", "hangs"):
        return failure.property, trial.transform, remove_numbers(failure.message)
    plain = Trial()
    names = "layouts", "offset", "scale", "hidden", "small_blocks", "dropout", "score", "normalizer"
    odd = tuple(name for name in names if getattr(trial, name) != getattr(plain, name))
    return failure.property.split()[0], trial.transform, odd, trial.score, trial.normalizer


class Findings:
    """The failures so far, counted by kind."""

    def __init__(self, folder: Path | None) -> None:
        self.folder, self.counts = folder, Counter[tuple[object, ...]]()

    def add(self, trial: Trial, failure: Failure) -> None:
        """Count a failure; print and save it if it is the first of its kind."""
        kind = classify(trial, failure)
        self.counts[kind] += 1
        if self.counts[kind] > 1:
            return
        script = write_script(trial, failure)
        print(f"\n--- {failure.property} by {failure.backend}: {failure.message}\n{script}\n---", flush=True)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            name = hashlib.sha256(script.encode()).hexdigest()[:10]
            kept = {"trial": json.loads(trial.write()), "failure": list(failure), "script": script.splitlines()}
            (self.folder / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def run_trials(first: int, trials: int, seconds: float, without: frozenset[str], found: Findings) -> int:
    """Run workers until time or trials are used up, a new one if one dies; return the number of trials."""
    context, start, seed = multiprocessing.get_context("spawn"), time.monotonic(), first - 1
    reported = start
    while time.monotonic() - start < seconds and seed - first + 1 < trials:
        here, there = context.Pipe(duplex=False)
        worker = context.Process(target=run_worker, args=(there, seed + 1, without), daemon=True)
        worker.start()
        there.close()
        try:
            while time.monotonic() - start < seconds:
                if not here.poll(SILENCE):
                    found.add(draw_trial(seed, without), Failure("hangs", "auto", f"{SILENCE:.0f} s"))
                    break
                kind, what, failure = here.recv()
                if kind == "found":
                    found.add(Trial.read(what), Failure(*failure))
                    continue
                if what - first >= trials:
                    return trials
                seed = what
                if time.monotonic() - reported > 1:
                    reported = time.monotonic()
                    print_progress(seed - first, reported - start, found)
        except EOFError:
            worker.join()
            if seed < first:  # a worker that cannot even begin would be started for ever
                raise RuntimeError(f"the worker ended with {worker.exitcode} before its first trial") from None
            found.add(draw_trial(seed, without), Failure("ends the process", "auto", f"exit code {worker.exitcode}"))
        finally:
            worker.kill()
    return seed - first


def print_progress(trials: int, seconds: float, found: Findings) -> None:
    """Print one line of progress, over the last one on a terminal."""
    line = f"{seconds:6.0f} s  {trials:8,} trials  {trials / seconds:5.1f} a second  "
    line += f"{sum(found.counts.values())} failures of {len(found.counts)} kinds"
    if sys.stderr.isatty():
        print(f"\r{line}", end="", file=sys.stderr, flush=True)
    elif int(seconds) % 30 == 0:
        print(line, file=sys.stderr, flush=True)
