"""Checks for other people's parts: call them in your own tests.

from regard.testing import check_score
def test_my_score(): check_score(MyScore())

Each tries what the part says of itself, then every backend that can compute it beside the parts of the catalog. A part
whose tensors belong to some number of queries, keys or heads is checked with those numbers.
"""

from collections.abc import Iterable

from regard.aggregates import Reading
from regard.biases import Bias
from regard.claims import find_false_claims
from regard.masks import Mask
from regard.normalizers import Normalizer
from regard.parts import Parts
from regard.scores import Score
from regard.verify import SMALL, Case, Error, Part, choose_sizes, compare, verify_part


def check_score(score: Score) -> None:
    """Every backend that can compute this score agrees with its `forward`, under all masks and normalizers."""
    check_part(score)


def check_bias(bias: Bias, *, queries: int | None = None, keys: int | None = None, heads: int | None = None) -> None:
    """A bias says the same of a pair whichever block asks, its forms are the same numbers, and every backend agrees."""
    check_part(bias, queries=queries, keys=keys, heads=heads)


def check_mask(mask: Mask, *, queries: int | None = None, keys: int | None = None, heads: int | None = None) -> None:
    """A mask says the same of a pair whichever block asks, what it says of itself is true, and it lowers rightly."""
    check_part(mask, queries=queries, keys=keys, heads=heads)


def check_normalizer(
    normalizer: Normalizer, *, queries: int | None = None, keys: int | None = None, heads: int | None = None
) -> None:
    """Weights are finite and not negative, masked pairs and empty rows weigh nothing, and every backend agrees."""
    check_part(normalizer, queries=queries, keys=keys, heads=heads)


def check_aggregate(
    aggregate: Reading, *, queries: int | None = None, keys: int | None = None, heads: int | None = None
) -> None:
    """A choice gives no weight to what had none, follows from its seed alone, and every backend agrees."""
    check_part(aggregate, queries=queries, keys=keys, heads=heads)


def check_part(part: Part, *, queries: int | None = None, keys: int | None = None, heads: int | None = None) -> None:
    """Check a part of any family."""
    sizes = choose_sizes(queries, keys, heads)
    for sentence in find_false_claims(part, sizes=sizes or SMALL):
        raise AssertionError(sentence)
    _agree(verify_part(part, sizes=sizes))


def check_lowering(parts: Parts) -> None:
    """Every backend that can compute these parts agrees with the definition."""
    case = Case(*(type(part).__name__ for part in parts))
    _agree(compare(case, parts, SMALL))


def _agree(errors: Iterable[Error]) -> None:
    for error in errors:
        if not error.right:
            raise AssertionError(
                f"{error.case} by {error.backend} differs from the definition: "
                f"value {error.value:.1e}, gradient {error.gradient:.1e}"
            )
