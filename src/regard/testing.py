"""Checks for other people's parts: call them in your own tests.

from regard.testing import check_score
def test_my_score(): check_score(MyScore())

Each checks what the part claims of itself, then every backend that supports it, with the parts of the catalog. Pass the
numbers of queries, keys or heads if the tensors of the part are made for them.
"""

from collections.abc import Iterable

from regard.algebra.aggregates import Aggregate
from regard.algebra.biases import Bias
from regard.algebra.masks import Mask
from regard.algebra.normalizers import Normalizer
from regard.algebra.parts import Parts
from regard.algebra.scores import Score
from regard.compute.claims import find_false_claims
from regard.compute.verification import SMALL, CatalogCase, Deviation, Part, choose_sizes, compare_backends, verify_part


def check_part(part: Part, *, queries: int | None = None, keys: int | None = None, heads: int | None = None) -> None:
    """Check a part of any family: what it claims of itself is true, and every backend that supports it agrees."""
    sizes = choose_sizes(queries, keys, heads)
    for sentence in find_false_claims(part, sizes=sizes or SMALL):
        raise AssertionError(sentence)
    _check_deviations(verify_part(part, sizes=sizes))


def check_score(score: Score) -> None:
    """Check that every backend that supports this score agrees with its `forward`, under all masks and normalizers."""
    check_part(score)


def check_bias(bias: Bias, *, queries: int | None = None, keys: int | None = None, heads: int | None = None) -> None:
    """Check that a bias is the same in every block, that its forms are equal, and that every backend agrees."""
    check_part(bias, queries=queries, keys=keys, heads=heads)


def check_mask(mask: Mask, *, queries: int | None = None, keys: int | None = None, heads: int | None = None) -> None:
    """Check that a mask is the same in every block, that its claims are true, and that every backend agrees."""
    check_part(mask, queries=queries, keys=keys, heads=heads)


def check_normalizer(
    normalizer: Normalizer, *, queries: int | None = None, keys: int | None = None, heads: int | None = None
) -> None:
    """Check that weights are finite and not negative, 0 for masked pairs and empty rows, and equal in every backend."""
    check_part(normalizer, queries=queries, keys=keys, heads=heads)


def check_aggregate(
    aggregate: Aggregate, *, queries: int | None = None, keys: int | None = None, heads: int | None = None
) -> None:
    """Check that a choice has no weight where there was none, depends on its seed alone, and is equal everywhere."""
    check_part(aggregate, queries=queries, keys=keys, heads=heads)


def check_backends(parts: Parts) -> None:
    """Check that every backend that supports these parts agrees with the definition."""
    case = CatalogCase(*(type(part).__name__ for part in parts))
    _check_deviations(compare_backends(case, parts, SMALL))


def _check_deviations(errors: Iterable[Deviation]) -> None:
    for error in errors:
        if not error.within_tolerance:
            raise AssertionError(
                f"{error.case} by {error.backend} differs from the definition: "
                f"value {error.value:.1e}, gradient {error.gradient:.1e}"
            )
