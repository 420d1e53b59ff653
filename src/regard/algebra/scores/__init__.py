"""Scores say how well a query matches a key. They have no projections: those belong to the layer."""

from regard.algebra.scores.additive import Additive, Concat
from regard.algebra.scores.base import DotForm, DotScore, Multiple, Score, Sum
from regard.algebra.scores.bilinear import Bilinear
from regard.algebra.scores.capped import Capped
from regard.algebra.scores.cosine import Cosine
from regard.algebra.scores.dot import Dot, ScaledDot
from regard.algebra.scores.features import FeatureDot
from regard.algebra.scores.gaussian import Gaussian
from regard.algebra.scores.laplacian import Laplacian
from regard.algebra.scores.location import Location

__all__ = [
    "Additive",
    "Bilinear",
    "Capped",
    "Concat",
    "Cosine",
    "Dot",
    "DotForm",
    "DotScore",
    "FeatureDot",
    "Gaussian",
    "Laplacian",
    "Location",
    "Multiple",
    "ScaledDot",
    "Score",
    "Sum",
]
