"""Checks for other people's parts: call them in your own tests.

from regard.testing import check_score
def test_my_score(): check_score(MyScore())
"""

import copy
import itertools
from collections.abc import Iterable

import torch

from regard import catalog
from regard.masks import Mask
from regard.normalizers import Normalizer
from regard.pairs import Pairs
from regard.parts import Parts
from regard.scores import Score
from regard.verify import SMALL, VALUE, Case, Error, build, compare, difference, pairwise, verify_score


def check_score(score: Score) -> None:
    """Every backend that can compute this score agrees with its `forward`, under all masks and normalizers."""
    _agree(verify_score(score, name=type(score).__name__))


def check_mask(mask: Mask, *, queries: int = SMALL.queries, keys: int = SMALL.keys) -> None:
    """A mask says the same of a pair whichever block asks, what it says of itself is true, and it lowers rightly."""
    table = mask.table(queries, keys)
    for start, stop in itertools.combinations(range(queries + 1), 2):
        rows = mask.allowed(Pairs(queries, keys, rows=(start, stop)))
        rows = rows.expand(*rows.shape[:-2], stop - start, keys)
        _equal(f"rows {start} … {stop - 1} of {type(mask).__name__}", rows, table[..., start:stop, :])
        first, last = mask.span(start, stop, queries, keys)
        outside = rows[..., [*range(first), *range(last, keys)]]
        _equal(f"outside the span of rows {start} … {stop - 1}", outside, torch.zeros_like(outside))
    _check_claims(mask, table, queries, keys)
    families = [["dot", "additive"], ["none", "alibi"], ["table"], list(catalog.NORMALIZERS), ["soft"]]
    sizes = SMALL._replace(queries=queries, keys=keys)
    for case in pairwise(families):
        parts = build(case, sizes)._replace(mask=mask)
        _agree(compare(case, parts, sizes))


def _check_claims(mask: Mask, table: torch.Tensor, queries: int, keys: int) -> None:
    """What a mask says of itself decides how it is computed."""
    name = type(mask).__name__
    after = torch.arange(keys) > torch.arange(queries)[:, None] + keys - queries
    if mask.causal and bool((table & after).any()):
        raise AssertionError(f"{name}.causal: got True, but a query sees a key after its own position")
    if mask.columnwise and not bool((table == table[..., :1, :]).all()):
        raise AssertionError(f"{name}.columnwise: got True, but two queries see different keys")
    most = int(table.sum(-1).max())
    if mask.width is not None and most > mask.width:
        raise AssertionError(f"{name}.width: got {mask.width}, but a query sees {most} keys")


def check_normalizer(normalizer: Normalizer) -> None:
    """Weights are finite and not negative, masked pairs and empty rows weigh nothing, and every backend agrees."""
    normalizer = copy.deepcopy(normalizer).to(torch.float64)  # the caller keeps theirs as it is
    families = [["dot", "additive"], ["none", "prior"], list(catalog.MASKS), ["softmax"], ["soft"]]
    for case in pairwise(families):
        parts = build(case, SMALL)._replace(normalizer=normalizer)
        _agree(compare(case, parts, SMALL))
        _check_weights(normalizer, parts.mask.table(SMALL.queries, SMALL.keys), case.mask)


def _check_weights(normalizer: Normalizer, allowed: torch.Tensor, mask: str) -> None:
    name, pairs = type(normalizer).__name__, Pairs(SMALL.queries, SMALL.keys)
    scores = torch.randn(*SMALL.lead, SMALL.queries, SMALL.keys, dtype=torch.float64)
    broken = torch.where(allowed, scores, float("nan"))
    weights = normalizer(broken, allowed, pairs)
    _equal("masked weights", weights[~allowed.expand_as(weights)].abs().sum(), torch.zeros(()))
    if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()):
        raise AssertionError(f"weights of {name} are negative or not finite under {mask}")
    if normalizer.shift_invariant and difference(normalizer(broken + 1.0, allowed, pairs), weights) > VALUE:
        raise AssertionError(f"{name}.shift_invariant: got True, but a shift changes weights")


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


def _equal(what: str, found: torch.Tensor, true: torch.Tensor) -> None:
    if not torch.equal(*torch.broadcast_tensors(found, true.to(found.dtype))):
        raise AssertionError(f"{what}: got {found.tolist()}, expected {true.tolist()}")
