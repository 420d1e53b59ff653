"""Combinations of the catalog to compare with the definition: all, every pair of parts, all beside one part."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from regard.algebra import catalog
from regard.algebra.parts import Parts

FAMILIES = Parts._fields


class CatalogCase(NamedTuple):
    """One combination of the catalog, by name."""

    score: str
    bias: str
    mask: str
    normalizer: str
    aggregate: str

    def __str__(self) -> str:
        return " × ".join(self)


PLAIN = CatalogCase("dot", "none", "full", "softmax", "soft")
BLOCKS = (
    CatalogCase("dot", "none", "window", "softmax", "soft"),
    CatalogCase("laplacian", "alibi", "window", "softmax", "soft"),
    CatalogCase("scaled-dot", "prior", "causal-window", "sparsemax", "soft"),
    CatalogCase("dot", "none", "causal-window", "sigmoid", "argmax"),
)
SOME_MASKS = ["full", "causal", "causal-window", "window", "lengths", "table"]
# What a part of each family is tried beside: all that decides how it is computed.
COMPANIONS: Mapping[str, Mapping[str, list[str]]] = {
    "score": {
        "bias": list(catalog.BIASES),
        "mask": list(catalog.MASKS),
        "normalizer": list(catalog.NORMALIZERS),
        "aggregate": ["soft", "argmax"],
    },
    "bias": {
        "score": ["dot", "additive"],
        "mask": SOME_MASKS,
        "normalizer": ["softmax", "tempered", "softmax-plus-one", "sparsemax", "sigmoid", "local-p"],
        "aggregate": ["soft", "argmax"],
    },
    "mask": {
        "score": ["dot", "additive"],
        "bias": ["none", "alibi"],
        "normalizer": list(catalog.NORMALIZERS),
        "aggregate": ["soft"],
    },
    "normalizer": {
        "score": ["dot", "additive"],
        "bias": ["none", "prior", "alibi"],
        "mask": list(catalog.MASKS),
        "aggregate": ["soft"],
    },
    "aggregate": {
        "score": ["dot", "additive"],
        "bias": ["none", "prior"],
        "mask": SOME_MASKS,
        "normalizer": ["softmax", "sparsemax", "sigmoid", "monotonic"],
    },
}


def iterate_cases() -> Iterator[CatalogCase]:
    """Yield every combination of the catalog."""
    for names in itertools.product(*(catalog.FAMILIES[family] for family in FAMILIES)):
        yield CatalogCase(*names)


def choose_pairwise_cases(families: Sequence[Sequence[str]] | None = None) -> list[CatalogCase]:
    """Return a few combinations in which every two names of different families meet at least once.

    Greedy: each new case starts from a pair that has not met and takes, family by family, the name that brings the
    most new meetings.
    """
    names = [list(f) for f in families or [list(catalog.FAMILIES[family]) for family in FAMILIES]]
    missing = {
        frozenset({(i, a), (j, b)})
        for i, j in itertools.combinations(range(len(names)), 2)
        for a in names[i]
        for b in names[j]
    }
    cases = []
    while missing:
        chosen = dict(sorted(min(missing, key=sorted)))
        for index in [i for i in range(len(names)) if i not in chosen]:
            chosen[index] = max(names[index], key=lambda name: _count_new_pairs(missing, chosen, index, name))
        met = {frozenset(pair) for pair in itertools.combinations(sorted(chosen.items()), 2)}
        missing -= met
        cases.append(CatalogCase(*(chosen[i] for i in range(len(names)))))
    return cases


def _count_new_pairs(missing: set[frozenset[tuple[int, str]]], chosen: Mapping[int, str], index: int, name: str) -> int:
    return sum(frozenset({(index, name), item}) in missing for item in chosen.items())
