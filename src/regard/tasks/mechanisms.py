"""Parts of the catalog by the names that configurations give them."""

from typing import cast

from regard.algebra import catalog
from regard.algebra.aggregates import Reading
from regard.algebra.catalog import Sizes
from regard.layers.mechanism import Mechanism
from regard.models.build import normalizer_of, score_of


def mechanism_of(score: str, sizes: Sizes, normalizer: str = "softmax", reading: str = "soft") -> Mechanism:
    """A score, a normalizer and a reading of the catalog.

    >>> type(mechanism_of("cosine", Sizes(8, 8, 8)).score).__name__
    'Cosine'
    """
    aggregate = cast(Reading, catalog.find("reading", reading)())
    return Mechanism(
        score_of(score, sizes), normalizer=normalizer_of(normalizer, sizes, walks=False), aggregate=aggregate
    )
