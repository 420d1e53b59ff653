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
SCORES = ("dot", "scaled-dot", "bilinear", "additive", "concat", "cosine", "gaussian", "location")
SETS = (
    *(f"width {width}, 400 updates" for width in (16, 64, 512)),
    *(f"{keys} keys, 3000 updates" for keys in (16, 32, 64)),
)
ITEMS = (16, 64, 256, 1024)
SHARPNESS = ("right", "weight at the right item", "share of the greatest entropy")
BOUNDED, LEARNT = "scores within ±5", "learned scores"


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


def measure_agreement(estimator: str, seed: int) -> list[float]:
    """Call `measure_gradient_agreement`, which is imported only when it is needed."""
    from regard.tasks.captioning.gradient_agreement import measure_gradient_agreement

    return [measure_gradient_agreement(estimator, seed)]


def measure_retrieval(score: str, seed: int) -> list[float]:
    """Call `measure_score`, which is imported only when it is needed."""
    from regard.tasks.noisy_retrieval import measure_score

    return measure_score(score, seed)


def measure_sharpness(kind: str, seed: int) -> list[float]:
    """Call `measure_normalizer`, which is imported only when it is needed."""
    from regard.tasks.relevant_item import measure_normalizer

    return measure_normalizer(kind, seed)


def measure_depths(kind: str, seed: int) -> list[float]:
    """Call `measure_norm`, which is imported only when it is needed."""
    from regard.tasks.norm_depths import measure_norm

    return measure_norm(kind, seed)


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
        claims=[
            Claim(
                "Luong, general; lengths 2 to 20",
                "no attention; lengths 2 to 20",
                "One vector cannot hold a long sequence.",
            ),
            Claim(
                "Bahdanau; lengths 21 to 31",
                "Transformer; lengths 21 to 31",
                "Beyond the trained lengths a recurrence goes on for a while; absolute positions are new at once.",
            ),
        ],
    ),
    "scores": Comparison(
        "retrieval",
        "from noise",
        SETS,
        "% right",
        [Variant(name, name, {}) for name in SCORES],
        measure_retrieval,
        claims=[
            Claim(
                "scaled-dot; width 512, 400 updates",
                "dot; width 512, 400 updates",
                "Without the division by √d, learning from wide vectors is slower here; why, this comparison does not "
                "measure.",
            ),
            Claim(
                "location; 16 keys, 3000 updates",
                "location; 32 keys, 3000 updates",
                "Location has no score for positions that it was not trained on (4 to 16 keys); the content of keys is "
                "the same everywhere.",
            ),
        ],
    ),
    "normalizers": Comparison(
        "retrieval",
        "of one item, trained on 4 to 16 items",
        [f"{quantity}, {items} items" for quantity in SHARPNESS for items in ITEMS],
        "%",
        [
            Variant(f"{normalizer}, {words}", f"{score} {normalizer}", {})
            for score, words in (("bounded", BOUNDED), ("learned", LEARNT))
            for normalizer in ("softmax", "entmax", "sparsemax")
        ],
        measure_sharpness,
        claims=[
            Claim(
                f"softmax, {BOUNDED}; right, 16 items",
                f"softmax, {BOUNDED}; right, 1024 items",
                "A softmax of bounded scores gives each item some weight, so that many items together outweigh one.",
            ),
            Claim(
                f"sparsemax, {BOUNDED}; right, 1024 items",
                f"softmax, {BOUNDED}; right, 1024 items",
                "An item whose score is far enough below the best has a weight of 0, however many there are.",
            ),
            Claim(
                f"softmax, {LEARNT}; right, 1024 items",
                f"softmax, {BOUNDED}; right, 1024 items",
                "If scores may grow in training, softmax is sharp enough for this many.",
            ),
        ],
        curves=dict.fromkeys(SHARPNESS, ITEMS),
        axis="items",
    ),
    "norms": Comparison(
        "sequences said backwards,",
        "300 updates without a warm-up",
        ("1 block", "4 blocks", "12 blocks"),
        "% of letters right",
        [Variant("norm first", "pre-norm", {}), Variant("norm last", "post-norm", {})],
        measure_depths,
        claims=[
            Claim(
                "norm first; 12 blocks",
                "norm last; 12 blocks",
                "A deep stack with the norm last does not learn at this rate from the start.",
            )
        ],
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
        claims=[
            Claim(
                "Bahdanau: additive, before the cell; lengths 11 to 16",
                "Luong: general, after the cell; lengths 11 to 16",
                "A cell that takes the context as an input goes on beyond the trained lengths.",
            )
        ],
        note="Trained lengths do not tell them apart.",
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
        claims=[
            Claim(
                "local-m (monotonic); lengths 11 to 16",
                "global; lengths 11 to 16",
                "Source and target have one order: local-m need not learn where to look.",
            )
        ],
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
    "soft-hard": Comparison(
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
        values = list(comparison.measure(variant.preset or variant.name, seed))
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
