"""Parts of the catalog by the names that configurations give them."""

from typing import cast

from regard.algebra import catalog
from regard.algebra.aggregates import Aggregate
from regard.algebra.catalog import Sizes
from regard.layers.mechanism import Mechanism
from regard.models.attention_builder import build_normalizer, build_score


def build_catalog_mechanism(
    score: str, sizes: Sizes, normalizer: str = "softmax", aggregate_name: str = "soft"
) -> Mechanism:
    """Return a mechanism of parts that the catalog has by these names.

    >>> type(build_catalog_mechanism("cosine", Sizes(8, 8, 8)).score).__name__
    'Cosine'
    """
    aggregate = cast(Aggregate, catalog.find("aggregate", aggregate_name)(sizes))
    return Mechanism(
        build_score(score, sizes), normalizer=build_normalizer(normalizer, sizes, sequential=False), aggregate=aggregate
    )
