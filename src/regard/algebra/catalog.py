"""The catalog: a name and a builder for every part. A class gets its names where it is written, by `list_as`."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from regard.algebra import aggregates, biases, masks, normalizers, scores
from regard.algebra.entries import CatalogBuilder, collect_entries
from regard.algebra.entries import Sizes as Sizes
from regard.algebra.masks import Causal, Window
from regard.algebra.scores import Dot, Gaussian, Laplacian, ScaledDot
from regard.errors import find_nearest, wrong

SCORES: Mapping[str, CatalogBuilder] = {
    **collect_entries(scores),
    "dot+gaussian": CatalogBuilder(
        lambda _: Dot() + 0.5 * Gaussian(bandwidth=2.0), "Dot() + 0.5 * Gaussian(bandwidth=2.0)"
    ),
    "dot+1": CatalogBuilder(lambda _: ScaledDot() + 1.0, "ScaledDot() + 1.0"),
    "dot+laplacian": CatalogBuilder(
        lambda _: ScaledDot() + Laplacian(bandwidth=2.0), "ScaledDot() + Laplacian(bandwidth=2.0)"
    ),
}

BIASES: Mapping[str, CatalogBuilder] = {"none": CatalogBuilder(lambda _: None), **collect_entries(biases)}

MASKS: Mapping[str, CatalogBuilder] = {
    **collect_entries(masks),
    "causal&lengths": CatalogBuilder(lambda s: Causal() & MASKS["lengths"](s), "Causal() & Lengths(lengths)"),
    "window&documents": CatalogBuilder(
        lambda s: Window(before=max(1, s.keys // 4), after=1) & MASKS["documents"](s),
        "Window(before=128, after=0) & Documents(documents)",
    ),
    "not-causal": CatalogBuilder(lambda _: ~Causal()),
    "causal|prefix": CatalogBuilder(lambda s: Causal() | MASKS["prefix"](s), "Causal() | Prefix(lengths)"),
}

NORMALIZERS: Mapping[str, CatalogBuilder] = collect_entries(normalizers)

AGGREGATES: Mapping[str, CatalogBuilder] = collect_entries(aggregates)

FAMILIES: Mapping[str, Mapping[str, CatalogBuilder]] = {
    "score": SCORES,
    "bias": BIASES,
    "mask": MASKS,
    "normalizer": NORMALIZERS,
    "aggregate": AGGREGATES,
}


def find(family: str, name: str) -> CatalogBuilder:
    """Return the builder of that name or alias, or raise with the name that was most likely meant."""
    return FAMILIES[family][resolve_name(family, name)]


def resolve_name(family: str, name: str) -> str:
    """Return the catalog's name of a part that papers, libraries, Chinese articles or its class call so.

    >>> resolve_name("score", "bahdanau"), resolve_name("score", "高斯核"), resolve_name("mask", "Look_Ahead")
    ('additive', 'gaussian', 'causal')
    """
    if name in FAMILIES[family]:
        return name
    names, plain = list_names(family), fold_name(name)
    if plain in names:
        return names[plain]
    for other in FAMILIES:
        if plain in list_names(other):
            raise wrong(family, repr(name), f"a {family}", f"write {other}={list_names(other)[plain]!r}")
    known = ", ".join(FAMILIES[family])
    raise wrong(family, repr(name), f"one of {known}", f"write {names[find_nearest(plain, names)]}")


def find_family(name: str, first: str) -> str:
    """Return the family that has a part of this name or alias; the first one is preferred, and returned if none has."""
    families = [first, *(family for family in FAMILIES if family != first)]
    return next((family for family in families if fold_name(name) in list_names(family)), first)


def list_names(family: str) -> dict[str, str]:
    """Return all that the parts of a family are called, each with its name in the catalog. Names win over aliases."""
    entries = FAMILIES[family]
    aliases = {fold_name(alias): name for name, entry in entries.items() for alias in entry.aliases}
    return {**_list_classes(family), **aliases, **{fold_name(name): name for name in entries}}


def build_named(family: str, name: str, sizes: Sizes, *, trained: bool) -> Any:
    """Build the part of that name for these sizes; raise if it has numbers that a name cannot tell.

    A part with parameters is built only if it is `trained`, by a layer that holds it: whoever calls `attend` again
    would get other parameters each time.
    """
    entry = find(family, name)
    part = entry.build(sizes)
    constructor = entry.format_constructor(sizes)
    has_parameters = isinstance(part, nn.Module) and any(True for _ in part.parameters())
    if constructor and not (trained and has_parameters):
        what = "parameters" if has_parameters else "numbers"
        fix = f"build {constructor} once, and pass it"
        raise wrong(family, repr(name), f"a {family} that holds its {what}", fix)
    return part


def _list_classes(family: str) -> dict[str, str]:
    """Return the names of the classes of a family, with the first name in the catalog of each."""
    modules = {"score": scores, "bias": biases, "mask": masks, "normalizer": normalizers, "aggregate": aggregates}
    entries = {kind: vars(vars(modules[family])[kind]).get("catalog_entries") for kind in modules[family].__all__}
    return {fold_name(kind): next(iter(own)) for kind, own in entries.items() if own}


def fold_name(name: str) -> str:
    """Return a name as it is compared: without regard to case, and with hyphens for blanks and underscores."""
    return name.strip().lower().replace("_", "-").replace(" ", "-")
