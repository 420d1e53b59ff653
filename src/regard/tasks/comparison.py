"""Comparisons of mechanisms on one task, each trained from several seeds."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

from regard.compute.timing import Spread, summarize
from regard.tasks.prediction import EvaluationReport
from regard.tasks.registry import import_task
from regard.training import Finished, train

SHARED = {"training.threads": "1"}  # so that seconds can be compared


class Variant(NamedTuple):
    """One side of a comparison."""

    name: str
    preset: str | None
    values: Mapping[str, str]


class Claim(NamedTuple):
    """A row that lies above another from every seed, and the reason, which is told only if it does."""

    high: str
    low: str
    reason: str


class Comparison(NamedTuple):
    """Variants that differ in one thing, on one task, judged by one metric on some of its test sets.

    Each variant is trained, unless `measure` computes the metric on each set from its preset and a seed.
    """

    task: str
    data: str
    sets: Sequence[str]
    metric: str
    variants: Sequence[Variant]
    measure: Callable[[str, int], Sequence[float]] | None = None
    note: str = ""  # what to look at
    claims: Sequence[Claim] = ()  # what may be seen
    curves: Mapping[str, Sequence[int]] = MappingProxyType({})  # quantity → the numbers that its sets are drawn over
    axis: str = ""  # what those numbers are
    example: Callable[[], Sequence[str]] | None = None  # lines that show what was compared


class Row(NamedTuple):
    """One variant over all seeds: the metric, and the seconds of one core that it took to get it."""

    name: str
    values: list[float]
    metric: Spread
    seconds: Spread


def compare_variants(
    comparison: Comparison, seeds: Sequence[int], more: Mapping[str, str] | None = None
) -> Iterator[Row]:
    """Yield a row for each variant and test set as soon as the variant is trained from every seed.

    `more` are values for all variants.
    """
    for variant in comparison.variants:
        measured = [measure_variant(comparison, variant, seed, more or {}) for seed in seeds]
        seconds = summarize([duration for _, duration in measured])
        for number, name in enumerate(comparison.sets):
            values = [found[number] for found, _ in measured]
            title = f"{variant.name}; {name}" if len(comparison.sets) > 1 else variant.name
            yield Row(title, values, summarize(values), seconds)


def measure_variant(
    comparison: Comparison, variant: Variant, seed: int, more: Mapping[str, str]
) -> tuple[list[float], float]:
    """Return the metric of one variant from one seed on each set, and the seconds that it took."""
    start = time.process_time()
    if comparison.measure is not None:
        values = list(comparison.measure(variant.preset or variant.name, seed))
    else:
        values = train_variant(comparison, variant, {**SHARED, **variant.values, **more, "seed": str(seed)})
    return values, time.process_time() - start


def train_variant(comparison: Comparison, variant: Variant, values: Mapping[str, str]) -> list[float]:
    """Train a variant, and return its metric on each set."""
    reports = train_task(comparison.task, comparison.data, variant.preset, values)
    return [reports[name].metrics[comparison.metric] for name in comparison.sets]


def train_task(name: str, data: str, preset: str | None, values: Mapping[str, str]) -> Mapping[str, EvaluationReport]:
    """Train a task in a folder that does not last, and return what it reaches on each test set."""
    package = import_task(name)
    config = package.configure(preset, (data,) if data else (), values)
    with TemporaryDirectory(prefix="regard-compare-") as folder:
        config = replace(config, training=replace(config.training, folder=Path(folder) / "run"))
        task = package.build_task(config)
        for event in train(task, task.config):
            if isinstance(event, Finished) and event.reason == "interrupted":
                raise KeyboardInterrupt
        reports: Mapping[str, EvaluationReport] = package.load(task.config, Path(folder) / "run").evaluate(None, "test")
    return reports


def describe_findings(values: Mapping[str, Sequence[float]], comparison: Comparison) -> str:
    """Return what is seen in the values of each row: the claims, or else the best row and the worst, and the note."""
    if comparison.claims:
        told = " ".join(describe_claim(values, claim) for claim in comparison.claims)
    else:
        best, worst = (choose(values, key=lambda row: median(values[row])) for choose in (max, min))
        told = describe_claim(values, Claim(best, worst, "No seed of the one reaches one of the other."))
    return f"{told} {comparison.note}".strip()


def describe_claim(values: Mapping[str, Sequence[float]], claim: Claim) -> str:
    """Return both medians, and the reason unless some seed contradicts it."""
    holds = min(values[claim.high]) > max(values[claim.low])
    sides = " against ".join(f"{name} {median(values[name]):.4g}" for name in (claim.high, claim.low))
    return f"{sides}: {claim.reason if holds else 'some seed of the one is not above all of the other.'}"
