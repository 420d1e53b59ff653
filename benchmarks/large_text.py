"""Translation of text that is larger than memory: `python -m benchmarks.large_text [--pairs N]`.

Invented pairs are written to a table. One process prepares them and takes the first steps; a second starts another run
on the same text, a third resumes the first one. Each tells when its first step begins, the processor time until then,
and how much memory was resident at most, then and after some steps. A run on few pairs takes the same steps beside
them: what it needs, the model needs. Validation is left to one pair.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch

from benchmarks.results import ASIDE, FOLDER, ROOT, CaseResult, Check, Entry, Result, save
from benchmarks.worker import record_setting
from regard.cli.machine import LoadMonitor

MILLION = 10**6
STEPS = 3  # of each process
LEXICONS = ((150_000, "bcdfghklmnprstvw", "aeiou"), (200_000, "bcdfghklmnprstvwz", "aeiouäöü"))  # of either side
SECONDS = {"prepared": 90.0, "started": 10.0, "resumed": 10.0}  # at most, for a million pairs
MEGABYTES = {False: 700.0, True: 1000.0}  # at most until the first step, of a million pairs and of more
PREPARING = 1000.0  # megabytes, at most, of any size
FEW = 20_000  # pairs of the run that shows what the model needs


class Phase(NamedTuple):
    """What one process needed until its first step, and its memory until the last one (`peak`)."""

    name: str
    seconds: float
    processor: float
    megabytes: float
    peak: float


def invent_words(count: int, consonants: str, vowels: str, random: numpy.random.Generator) -> numpy.ndarray:
    """Return different words, the short ones first, as the frequent words of a language are short."""
    syllables = numpy.array([first + second for first in consonants for second in vowels])
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(random.choice(syllables, 1 + min(5, random.geometric(0.45))))] = None
    return numpy.array(sorted(words, key=len), dtype=object)


def invent_lines(pairs: int, block: int = 20_000) -> Iterator[str]:
    """Yield lines of pairs, about 270 bytes each, whose words are as frequent as Zipf's law has them."""
    random = numpy.random.default_rng(7)
    sides = [invent_words(*lexicon, random) for lexicon in LEXICONS]
    shares = [numpy.cumsum(1 / numpy.arange(1, len(words) + 1)) for words in sides]
    for begin in range(0, pairs, block):
        lengths = 2 + random.gamma(4, 4.0, min(block, pairs - begin)).astype(int).clip(1, 120)
        rows = []
        for words, share in zip(sides, shares, strict=True):
            drawn = numpy.searchsorted(share, share[-1] * random.random(lengths.sum()))
            rows.append(numpy.split(words[drawn], numpy.cumsum(lengths)[:-1]))
        for source, target in zip(*rows, strict=True):
            yield f"{' '.join(source).capitalize()}.\t{' '.join(target).capitalize()}.\n"


def run_phase(name: str, table: Path, run: Path, resume: bool) -> None:
    """Be the process that trains, and print what it needed."""
    from regard.tasks import build_task, import_task, read_config
    from regard.training import Finished, Started, train

    fields = {"folder": str(run), "stop.steps": str(10**6), "every.evaluate": str(10**6), "measure.most": "1"}
    fresh = import_task("translation").configure("transformer-tiny", [str(table)], fields)
    task = build_task(read_config(run), run) if resume else build_task(fresh, None)
    print(*task.notes, sep="\n", file=sys.stderr)
    steps: list[int] = []
    begun = Phase(name, 0.0, 0.0, 0.0, 0.0)
    events = train(
        task,
        task.config,
        resume=run if resume else None,
        stop=lambda: len(steps) >= STEPS,
        after_step=lambda progress: steps.append(progress.step),
    )
    for event in events:
        if isinstance(event, Started):
            begun = Phase(name, time.time() - float(os.environ["BEGUN"]), time.process_time(), find_peak(), 0.0)
        if isinstance(event, Finished):
            print(json.dumps(begun._replace(peak=find_peak())._asdict()))


def find_peak() -> float:
    """The megabytes that were resident at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_phase(name: str, table: Path, run: Path, resume: bool = False) -> Phase:
    """Ask a fresh process."""
    command = [sys.executable, "-m", "benchmarks.large_text", "--worker", name, str(table), str(run), str(int(resume))]
    environment = os.environ | {"BEGUN": str(time.time()), "REGARD_CACHE": str(run.parent / "cache")}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
    phase = Phase(**json.loads(done.stdout.splitlines()[-1]))
    times = f"{phase.seconds:.1f} s, {phase.processor:.1f} s of processor time"
    print(f"{name}: {times}, {phase.megabytes:,.0f} MB, with {STEPS} steps {phase.peak:,.0f} MB")
    return phase


def measure(pairs: int, folder: Path) -> list[Phase]:
    """Write the text, then prepare it, start on it and resume."""
    table, few = folder / "pairs.tsv", folder / "few.tsv"
    for path, count in ((table, pairs), (few, FEW)):
        with path.open("w", encoding="utf-8") as file:
            file.writelines(invent_lines(count))
    print(f"{pairs:,} pairs, {table.stat().st_size / 1e6:,.0f} MB")
    # Kernels are compiled once on a machine, whatever the text.
    load = [sys.executable, "-c", "from regard.compute.kernels import native; native.load_library()"]
    subprocess.run(load, check=True, env=os.environ | {"REGARD_CACHE": str(folder / "cache")})
    return [
        measure_phase("prepared", table, folder / "first"),
        measure_phase("started", table, folder / "second"),
        measure_phase("resumed", table, folder / "first", resume=True),
        measure_phase(f"{FEW:,} pairs", few, folder / "few"),
    ]


def build_cases(pairs: int, phases: list[Phase]) -> list[CaseResult]:
    """Return the times and the memory of one size of text, with the floors of a million pairs and of ten."""
    times: list[Entry] = []
    sizes: list[Entry] = []
    name, large = f"{pairs:,} pairs", pairs > MILLION
    for phase in phases:
        for unit, what, value in (
            (times, phase.name, phase.seconds),
            (times, f"{phase.name}, processor", phase.processor),
            (sizes, phase.name, phase.megabytes),
            (sizes, f"{phase.name}, with {STEPS} steps", phase.peak),
        ):
            unit.append(Entry(what, value, value, value, 1))
    waits, weights = [], []
    for what, seconds, _, megabytes, _ in phases[:-1]:
        waits.append(Check(what, seconds, seconds, seconds, "most", SECONDS[what], "s"))
        most = PREPARING if what == "prepared" else MEGABYTES[large]
        weights.append(Check(what, megabytes, megabytes, megabytes, "most", most, "MB"))
    return [
        CaseResult(name, "s", times, [] if large else waits),
        CaseResult(name, "MB", sizes, weights, measured="resident at most"),
    ]


def main() -> int:
    """Measure, print, save; 1 if a floor is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_text", description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="*", default=[MILLION, 10 * MILLION])
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.worker:
        name, table, run, resume = given.worker
        run_phase(name, Path(table), Path(run), resume == "1")
        return 0
    load, watch, cases = os.getloadavg()[0], LoadMonitor(), []
    for pairs in given.pairs:
        with tempfile.TemporaryDirectory() as folder:
            cases += build_cases(pairs, measure(pairs, Path(folder)))
    setting = record_setting(torch.get_num_threads(), load, watch, quick=max(given.pairs) < MILLION)
    found = Result("large_text", "Text larger than memory", setting, cases)
    print(save(found, ASIDE if found.setting.quick else FOLDER))
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
