"""Scores say how well a query matches a key. They have no projections: those belong to the layer.

What is imported here is public, and is listed in this order in the catalog.
"""
# ruff: noqa: I001

from typing import TYPE_CHECKING

from regard.algebra.scores.base import DotForm as DotForm, DotScore as DotScore, Score as Score
from regard.algebra.scores.dot import Dot as Dot, ScaledDot as ScaledDot
from regard.algebra.scores.bilinear import Bilinear as Bilinear
from regard.algebra.scores.additive import Concat as Concat, Additive as Additive
from regard.algebra.scores.location import Location as Location
from regard.algebra.scores.cosine import Cosine as Cosine
from regard.algebra.scores.gaussian import Gaussian as Gaussian
from regard.algebra.scores.laplacian import Laplacian as Laplacian
from regard.algebra.scores.capped import Capped as Capped
from regard.algebra.scores.features import FeatureDot as FeatureDot

if not TYPE_CHECKING:  # type checkers read the imports, and would not understand a list that is computed
    __all__ = [name for name, part in globals().items() if isinstance(part, type)]
