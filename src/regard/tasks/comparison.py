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
LEARNED = {"training.stop.epochs": "20", "training.stop.target": "none"}  # enough for all that can learn it
GRU = LEARNED | {"model.recurrent.cell": "gru"}
LOCAL = GRU | {"model.attention.radius": "2"}
TRANSFORMER = LEARNED | {
    "training.stop.epochs": "40",
    "model.encoder": "transformer",
    "model.decoder": "transformer",
    "model.size": "48",
    "model.transformer.layers": "1",
    "model.transformer.decoder_layers": "1",
    "model.transformer.hidden": "96",
}
LENGTHS = ("lengths 2 to 10", "lengths 11 to 16")  # those that were trained on, and longer ones
LONG = {"data.longest": "20"}  # too much for one vector of 64 numbers
RETRIEVAL = {"data.items": "3000", "training.stop.epochs": "30"}


class Variant(NamedTuple):
    """One side of a comparison."""

    name: str
    preset: str | None
    values: Mapping[str, str]


class Comparison(NamedTuple):
    """Variants that differ in one thing, on one task, judged by one metric on some of its test sets.

    Each variant is trained, unless `measure` computes the metric from its preset and a seed.
    """

    task: str
    data: str
    sets: Sequence[str]
    metric: str
    variants: Sequence[Variant]
    measure: Callable[[str, int], float] | None = None
    note: str = ""  # what to look at


def measure_agreement(estimator: str, seed: int) -> float:
    """Call `measure_gradient_agreement`, which is imported only when it is needed."""
    from regard.tasks.captioning.gradient_agreement import measure_gradient_agreement

    return measure_gradient_agreement(estimator, seed)


COMPARISONS: Mapping[str, Comparison] = {
    "length": Comparison(
        "inversion",
        "invert",
        ("lengths 2 to 20", "lengths 21 to 31", "length 40"),
        "exact",
        [
            Variant("no attention", "no-attention", GRU | LONG),
            Variant("Bahdanau", "bahdanau", GRU | LONG),
            Variant("Luong, dot", "luong", GRU | LONG | {"model.attention.score": "dot"}),
            Variant("Luong, general", "luong", GRU | LONG),
            Variant("Luong, concat", "luong", GRU | LONG | {"model.attention.score": "concat"}),
            Variant("Transformer", None, TRANSFORMER | LONG),
        ],
        note="One vector cannot hold a long sequence: see the model without attention at trained lengths.",
    ),
    "bahdanau-luong": Comparison(
        "inversion",
        "copy",
        LENGTHS,
        "exact",
        [
            Variant("Bahdanau: additive, before the cell", "bahdanau", GRU),
            Variant(
                "Luong: general, after the cell, input feeding", "luong", GRU | {"model.attention.feeding": "true"}
            ),
            Variant("Luong: general, after the cell", "luong", GRU),
        ],
        note="Both learn the task. A cell that takes the context as an input goes on beyond the trained lengths.",
    ),
    "soft-hard": Comparison(
        "next-vector",
        "retrieval",
        ["test"],
        "error",
        [
            Variant("soft", None, RETRIEVAL),
            Variant("hard (Gumbel, straight-through)", None, RETRIEVAL | {"model.aggregate": "gumbel-straight"}),
            Variant("hard (argmax, straight-through)", None, RETRIEVAL | {"model.aggregate": "argmax"}),
        ],
    ),
    "global-local": Comparison(
        "inversion",
        "copy",
        LENGTHS,
        "exact",
        [
            Variant("global", "luong", GRU),
            Variant("local-m (monotonic)", "luong", LOCAL | {"model.attention.scope": "local-m"}),
            Variant("local-p (predicted)", "luong", LOCAL | {"model.attention.scope": "local-p"}),
        ],
        note="Source and target have one order: local-m need not learn where to look.",
    ),
    "global-local-inverted": Comparison(
        "inversion",
        "invert",
        ["lengths 2 to 20"],
        "exact",
        [
            Variant("global", "luong", GRU | LONG),
            Variant("local-m (monotonic)", "luong", LOCAL | LONG | {"model.attention.scope": "local-m"}),
            Variant("local-p (predicted)", "luong", LOCAL | LONG | {"model.attention.scope": "local-p"}),
        ],
        note="The order is reversed: what local-m looks at is not what it needs.",
    ),
    "estimators": Comparison(
        "captioning",
        "scenes",
        ["the first words of two scenes"],
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
        values = [comparison.measure(variant.preset or variant.name, seed)]
    else:
        values = train_variant(comparison, variant, {**SHARED, **variant.values, **more, "seed": str(seed)})
    return values, time.process_time() - start


def train_variant(comparison: Comparison, variant: Variant, values: Mapping[str, str]) -> list[float]:
    """Train a variant, and return its metric on each set."""
    package = import_task(comparison.task)
    config = package.configure(variant.preset, (comparison.data,), values)
    with TemporaryDirectory(prefix="regard-compare-") as folder:
        config = replace(config, training=replace(config.training, folder=Path(folder) / "run"))
        task = package.build_task(config)
        for _ in train(task, task.config):
            pass
        reports = package.load(task.config, Path(folder) / "run").evaluate(None, "test")
    return [reports[name].metrics[comparison.metric] for name in comparison.sets]


def describe_findings(rows: Sequence[Row], note: str) -> str:
    """Return what is seen in one sentence: the best and the worst, and whether their ranges are apart."""
    best, worst = (choose(rows, key=lambda row: row.metric.median) for choose in (max, min))
    apart = min(best.values) > max(worst.values)
    seen = f"{best.name} has the most, {best.metric.median:.4g}; {worst.name} the least, {worst.metric.median:.4g}"
    return f"{seen}; {'no seed' if apart else 'some seed'} of the one is below one of the other. {note}".strip()
