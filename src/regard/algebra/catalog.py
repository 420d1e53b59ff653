"""The catalog: a name and a builder for every part. A class gets its names where it is written, by `list_as`."""

from collections.abc import Callable, Mapping

from regard.algebra import aggregates, biases, masks, normalizers, scores
from regard.algebra.aggregates import Aggregate
from regard.algebra.biases import Bias
from regard.algebra.entries import Sizes as Sizes
from regard.algebra.entries import collect_entries
from regard.algebra.masks import Causal, Mask, Window
from regard.algebra.normalizers import Normalizer
from regard.algebra.scores import Dot, Gaussian, Laplacian, ScaledDot, Score
from regard.errors import find_nearest, wrong

SCORES: Mapping[str, Callable[[Sizes], Score]] = {
    **collect_entries(scores),
    "dot+gaussian": lambda _: Dot() + 0.5 * Gaussian(bandwidth=2.0),
    "dot+laplacian": lambda _: ScaledDot() + Laplacian(bandwidth=2.0),
}

BIASES: Mapping[str, Callable[[Sizes], Bias | None]] = {"none": lambda _: None, **collect_entries(biases)}

MASKS: Mapping[str, Callable[[Sizes], Mask]] = {
    **collect_entries(masks),
    "causal&lengths": lambda s: Causal() & MASKS["lengths"](s),
    "window&documents": lambda s: Window(before=max(1, s.keys // 4), after=1) & MASKS["documents"](s),
    "not-causal": lambda _: ~Causal(),
    "causal|prefix": lambda s: Causal() | MASKS["prefix"](s),
}

NORMALIZERS: Mapping[str, Callable[[Sizes], Normalizer]] = collect_entries(normalizers)

AGGREGATES: Mapping[str, Callable[[Sizes], Aggregate]] = collect_entries(aggregates)

FAMILIES: Mapping[str, Mapping[str, Callable[[Sizes], object]]] = {
    "score": SCORES,
    "bias": BIASES,
    "mask": MASKS,
    "normalizer": NORMALIZERS,
    "aggregate": AGGREGATES,
}


def find(family: str, name: str) -> Callable[[Sizes], object]:
    """Return the builder of that name, or raise with the nearest known name."""
    known = FAMILIES[family]
    if name not in known:
        raise wrong(family, repr(name), f"one of {', '.join(known)}", f"write {find_nearest(name, known)}")
    return known[name]
