"""Describe the parts of the catalog, layers, models and tasks from their docstrings."""

import inspect
import re
from importlib import import_module
from typing import NamedTuple

from regard.algebra import catalog
from regard.algebra.catalog import Sizes
from regard.algebra.chinese import describe_in_chinese
from regard.cli import inventory
from regard.errors import find_nearest, wrong

EXAMPLE_SIZES = Sizes(query=8, key=8, value=8, lead=(1, 2), queries=8, keys=8)


class CatalogEntry(NamedTuple):
    """One part of the catalog, or one layer, model or task."""

    family: str
    name: str
    part: str
    summary: str
    text: str
    chinese: str


def select_families(only: str | None = None) -> list[str]:
    """Return all families, or the one asked for."""
    known = [*catalog.FAMILIES, *inventory.FAMILIES]
    if only is not None and only not in known:
        raise wrong("family", repr(only), f"one of {', '.join(known)}", f"write {find_nearest(only, known)}")
    return [only] if only else known


def describe_family(family: str) -> list[CatalogEntry]:
    """Return every entry of a family."""
    if family in inventory.FAMILIES:
        return [describe_entry(family, name) for name in inventory.FAMILIES[family]]
    return [describe_part(family, name) for name in catalog.FAMILIES[family]]


def find_entries(name: str) -> list[CatalogEntry]:
    """Return the layers, models and tasks that go by this name, in Chinese or English.

    >>> [(entry.family, entry.part) for entry in find_entries("多头注意力")]
    [('layer', 'Attention')]
    >>> [entry.family for entry in find_entries("Transformer")]
    ['encoder', 'decoder', 'preset', 'preset']
    """
    plain = catalog.fold_name(name)
    return [
        describe_entry(family, own)
        for family, entries in inventory.FAMILIES.items()
        for own, entry in entries.items()
        if plain in (own, entry.target.partition(":")[2].lower(), *entry.aliases.lower().split())
    ]


def describe_entry(family: str, name: str) -> CatalogEntry:
    """Return the description of a layer, model or task: that of its docstring, or of its configuration."""
    target, chinese, _ = inventory.FAMILIES[family][name]
    module, _, attribute = target.partition(":")
    found = getattr(import_module(module), attribute)
    if family == "preset":
        config = found[name]
        text = f"A {config.encoder} encoder and a {config.decoder} decoder, {config.size} numbers for a token."
        return CatalogEntry(family, name, type(config).__name__, text, text, chinese)
    if family == "task":
        text = f"Learn {found[name].learns}."
        return CatalogEntry(family, name, found[name].definition, text, text, chinese)
    text = strip_doctest(inspect.getdoc(found) or "")
    return CatalogEntry(family, name, attribute, text.splitlines()[0], text, chinese)


def describe_part(family: str, name: str) -> CatalogEntry:
    """Return the description of one part, which is built for an example size."""
    name = catalog.resolve_name(family, name)
    part = catalog.FAMILIES[family][name](EXAMPLE_SIZES)
    text = inspect.getdoc(type(part)) or ""
    summary = text.splitlines()[0] if part is not None else "No bias."
    kind = "—" if part is None else type(part).__name__
    return CatalogEntry(
        family, name, kind, summary, "" if part is None else strip_doctest(text), describe_in_chinese(family, name)
    )


def strip_doctest(text: str) -> str:
    """Return a docstring without its doctest, formulas left as they are written.

    >>> strip_doctest("One.\\n\\n>>> 1\\n1\\n")
    'One.'
    """
    return re.split(r"\n\s*>>> ", text)[0].strip()
