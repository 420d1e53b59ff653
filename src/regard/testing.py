"""Checks for other people's parts: call them in your own tests.

from regard.testing import check_score
def test_my_score(): check_score(MyScore())

Each checks what the part claims of itself, then every backend that supports it, with the parts of the catalog. Pass the
numbers of queries, keys or heads if the tensors of the part are made for them.
"""

from collections.abc import Iterable

from regard.algebra.parts import Parts
from regard.compute.catalog_cases import CatalogCase
from regard.compute.claims import find_false_claims
from regard.compute.verification import SMALL, Deviation, Part, choose_sizes, compare_backends, verify_part


def check_part(part: Part, *, queries: int | None = None, keys: int | None = None, heads: int | None = None) -> None:
    """Check that what a part claims of itself is true and that every backend that supports it agrees.

    Scores, biases and masks are the same in every block; weights are finite, not negative, and 0 for masked pairs; a
    choice depends on its seed alone, and has no weight where there was none.
    """
    sizes = choose_sizes(queries, keys, heads)
    for sentence in find_false_claims(part, sizes=sizes or SMALL):
        raise AssertionError(sentence)
    _check_deviations(verify_part(part, sizes=sizes))


check_score = check_bias = check_mask = check_normalizer = check_aggregate = check_part
"""The same check by the name of the family, which is what a test wants to say."""


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
