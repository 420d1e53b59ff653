"""Describe the parts of the catalog from their docstrings."""

import inspect
import re
from typing import NamedTuple

from regard.algebra import catalog
from regard.algebra.catalog import Sizes
from regard.algebra.chinese import describe_in_chinese
from regard.errors import find_nearest, wrong

EXAMPLE_SIZES = Sizes(query=8, key=8, value=8, lead=(1, 2), queries=8, keys=8)


class CatalogEntry(NamedTuple):
    """One part of the catalog."""

    family: str
    name: str
    part: str
    summary: str
    text: str
    chinese: str


def select_families(only: str | None = None) -> list[str]:
    """Return all families, or the one asked for."""
    if only is not None and only not in catalog.FAMILIES:
        known = ", ".join(catalog.FAMILIES)
        raise wrong("family", repr(only), f"one of {known}", f"write {find_nearest(only, catalog.FAMILIES)}")
    return [only] if only else list(catalog.FAMILIES)


def describe_family(family: str) -> list[CatalogEntry]:
    """Return every part of a family."""
    return [describe_part(family, name) for name in catalog.FAMILIES[family]]


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
