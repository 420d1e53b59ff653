"""Scores say how well a query matches a key. They have no projections: those belong to the layer."""

from regard.scores.additive import Additive, Concat
from regard.scores.base import DotForm, DotScore, Multiple, Score, Sum
from regard.scores.bilinear import Bilinear
from regard.scores.capped import Capped
from regard.scores.cosine import Cosine
from regard.scores.dot import Dot, ScaledDot
from regard.scores.features import Features
from regard.scores.gaussian import Gaussian
from regard.scores.laplacian import Laplacian
from regard.scores.location import Location

__all__ = [
    "Additive",
    "Bilinear",
    "Capped",
    "Concat",
    "Cosine",
    "Dot",
    "DotForm",
    "DotScore",
    "Features",
    "Gaussian",
    "Laplacian",
    "Location",
    "Multiple",
    "ScaledDot",
    "Score",
    "Sum",
]
