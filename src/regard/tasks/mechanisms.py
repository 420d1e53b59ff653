"""Parts of the catalog by the names that configurations give them."""

from typing import cast

from regard import catalog
from regard.aggregates import Reading
from regard.catalog import Sizes
from regard.errors import wrong
from regard.layers.mechanism import Mechanism
from regard.normalizers import Normalizer, SequentialNormalizer
from regard.scores import Score


def mechanism_of(score: str, sizes: Sizes, normalizer: str = "softmax", reading: str = "soft") -> Mechanism:
    """A score, a normalizer and a reading of the catalog.

    >>> type(mechanism_of("cosine", Sizes(8, 8, 8)).score).__name__
    'Cosine'
    """
    aggregate = cast(Reading, catalog.find("reading", reading)())
    return Mechanism(score_of(score, sizes), normalizer=normalizer_of(normalizer, sizes), aggregate=aggregate)


def score_of(name: str, sizes: Sizes) -> Score:
    """A score of the catalog for queries and keys of these sizes."""
    return cast(Score, catalog.find("score", name)(sizes))


def normalizer_of(name: str, sizes: Sizes) -> Normalizer:
    """A normalizer of the catalog whose rows stand alone."""
    found = cast(Normalizer, catalog.find("normalizer", name)(sizes))
    if isinstance(found, SequentialNormalizer) or name == "local-p":
        raise wrong("normalizer", repr(name), "one whose rows stand alone", "write softmax")
    return found
