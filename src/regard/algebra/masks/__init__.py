"""Masks say which pairs may attend. True = may attend, always. Those of other libraries: `masks.conversion`.

What is imported here is public, and is listed in this order in the catalog.
"""
# ruff: noqa: I001

from typing import TYPE_CHECKING

from regard.algebra.masks.patterns import Full as Full, Causal as Causal, CausalFromFirst as CausalFromFirst
from regard.algebra.masks.patterns import Window as Window, CenteredWindow as CenteredWindow
from regard.algebra.masks.lengths import Lengths as Lengths, QueryLengths as QueryLengths, Prefix as Prefix
from regard.algebra.masks.documents import Documents as Documents
from regard.algebra.masks.base import Mask as Mask, Table as Table

if not TYPE_CHECKING:  # type checkers read the imports, and would not understand a list that is computed
    __all__ = [name for name, part in globals().items() if isinstance(part, type)]
