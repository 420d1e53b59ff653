"""Comparisons of mechanisms on one task, each trained from several seeds."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from regard.compute.timing import Spread, summarize
from regard.tasks.registry import import_task
from regard.training import train

SHARED = {"training.threads": "1"}  # so that seconds can be compared
COPY = {"data.longest": "8", "data.items": "2560", "training.stop.epochs": "6", "training.stop.target": "none"}
LOCAL = COPY | {"model.attention.radius": "2"}
# Sequences longer than those trained on: of these, all mechanisms get nearly all right.
BEYOND = "lengths 9 to 13"
RETRIEVAL = {"data.items": "3000", "training.stop.epochs": "30"}


class Variant(NamedTuple):
    """One side of a comparison."""

    name: str
    preset: str | None
    values: Mapping[str, str]


class Comparison(NamedTuple):
    """Variants that differ in one thing, on one task, judged by one metric of one of its test sets.

    Each variant is trained, unless `measure` computes the metric from its preset and a seed.
    """

    task: str
    data: str
    set: str
    metric: str
    variants: Sequence[Variant]
    measure: Callable[[str, int], float] | None = None


def measure_agreement(estimator: str, seed: int) -> float:
    """Call `measure_gradient_agreement`, which is imported only when it is needed."""
    from regard.tasks.captioning.gradient_agreement import measure_gradient_agreement

    return measure_gradient_agreement(estimator, seed)


COPYING = Comparison("inversion", "copy", BEYOND, "exact", ())
COMPARISONS: Mapping[str, Comparison] = {
    "bahdanau-luong": COPYING._replace(
        variants=[
            # The presets differ in their cells, too.
            Variant("Bahdanau (additive)", "bahdanau", COPY | {"model.recurrent.cell": "lstm"}),
            Variant("Luong (general)", "luong", COPY | {"model.recurrent.cell": "lstm"}),
        ]
    ),
    "soft-hard": Comparison(
        "next-vector",
        "retrieval",
        "test",
        "error",
        [
            Variant("soft", None, RETRIEVAL),
            Variant("hard (Gumbel, straight-through)", None, RETRIEVAL | {"model.aggregate": "gumbel-straight"}),
            Variant("hard (argmax, straight-through)", None, RETRIEVAL | {"model.aggregate": "argmax"}),
        ],
    ),
    "global-local": COPYING._replace(
        variants=[
            Variant("global", "luong", COPY),
            Variant("local-m (monotonic)", "luong", LOCAL | {"model.attention.scope": "local-m"}),
            Variant("local-p (predicted)", "luong", LOCAL | {"model.attention.scope": "local-p"}),
        ]
    ),
    "estimators": Comparison(
        "captioning",
        "scenes",
        "the first words of two scenes",
        "cosine between the gradient of the attention and that of the exact expectation",
        [
            Variant("hard, REINFORCE", "reinforce", {}),
            Variant("hard, Gumbel", "gumbel", {}),
            Variant("hard, Gumbel and straight-through", "gumbel-straight", {}),
            Variant("hard, best and straight-through", "straight-through", {}),
            Variant("soft", "soft", {}),
        ],
        measure_agreement,
    ),
}


class Row(NamedTuple):
    """One variant over all seeds: the metric, and the seconds of one core that it took to get it."""

    name: str
    values: list[float]
    metric: Spread
    seconds: Spread


def compare_variants(
    comparison: Comparison, seeds: Sequence[int], more: Mapping[str, str] | None = None
) -> Iterator[Row]:
    """Yield a row for each variant as soon as it is trained from every seed. `more` are values for all variants."""
    for variant in comparison.variants:
        measured = [measure_variant(comparison, variant, seed, more or {}) for seed in seeds]
        values, seconds = [value for value, _ in measured], [duration for _, duration in measured]
        yield Row(variant.name, values, summarize(values), summarize(seconds))


def measure_variant(
    comparison: Comparison, variant: Variant, seed: int, more: Mapping[str, str]
) -> tuple[float, float]:
    """Return the metric of one variant from one seed, and the seconds that it took."""
    start = time.process_time()
    if comparison.measure is not None:
        value = comparison.measure(variant.preset or variant.name, seed)
    else:
        value = train_variant(comparison, variant, {**SHARED, **variant.values, **more, "seed": str(seed)})
    return value, time.process_time() - start


def train_variant(comparison: Comparison, variant: Variant, values: Mapping[str, str]) -> float:
    """Train a variant, and return its metric."""
    package = import_task(comparison.task)
    config = package.configure(variant.preset, (comparison.data,), values)
    with TemporaryDirectory(prefix="regard-compare-") as folder:
        config = replace(config, training=replace(config.training, folder=Path(folder) / "run"))
        task = package.build_task(config)
        for _ in train(task, task.config):
            pass
        report = package.load(task.config, Path(folder) / "run").evaluate(None, "test")[comparison.set]
    return report.metrics[comparison.metric]
