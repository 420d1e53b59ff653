"""Checks for other people's parts: call them in your own tests.

from regard.testing import check_score
def test_my_score(): check_score(MyScore())
"""

from collections.abc import Iterable

import torch

from regard import catalog
from regard.masks import Mask
from regard.normalizers import Normalizer
from regard.pairs import Pairs
from regard.parts import Parts
from regard.scores import Score
from regard.verify import SMALL, Case, Error, build, compare, pairwise, verify_score


def check_score(score: Score) -> None:
    """Every backend that can compute this score agrees with its `forward`, under all masks and normalizers."""
    _agree(verify_score(score, name=type(score).__name__))


def check_mask(mask: Mask, *, queries: int = SMALL.queries, keys: int = SMALL.keys) -> None:
    """A mask says the same of a pair whichever block asks, covers what its span leaves out, and lowers rightly."""
    table = mask.table(queries, keys)
    for start in range(queries):
        first, last = mask.span(start, start + 1, queries, keys)
        row = mask.allowed(Pairs(queries, keys, rows=(start, start + 1)))
        row = row.expand(*row.shape[:-1], keys)
        _equal(f"row {start} of {type(mask).__name__}", row[..., 0, :], table[..., start, :])
        outside = [*range(first), *range(last, keys)]
        _equal(f"outside the span of row {start}", row[..., outside], torch.zeros_like(row[..., outside]))
    families = [["dot", "additive"], ["none", "alibi"], ["table"], list(catalog.NORMALIZERS), ["soft"]]
    sizes = SMALL._replace(queries=queries, keys=keys)
    for case in pairwise(families):
        parts = build(case, sizes)._replace(mask=mask)
        _agree(compare(case, parts, sizes))


def check_normalizer(normalizer: Normalizer) -> None:
    """Weights are finite and not negative, masked pairs and empty rows weigh nothing, and every backend agrees."""
    normalizer.to(torch.float64)
    families = [["dot", "additive"], ["none", "prior"], list(catalog.MASKS), ["softmax"], ["soft"]]
    for case in pairwise(families):
        parts = build(case, SMALL)._replace(normalizer=normalizer)
        _agree(compare(case, parts, SMALL))
        scores = torch.randn(*SMALL.lead, SMALL.queries, SMALL.keys, dtype=torch.float64)
        allowed = parts.mask.table(SMALL.queries, SMALL.keys)
        broken = torch.where(allowed, scores, float("nan"))
        weights = normalizer(broken, allowed, Pairs(SMALL.queries, SMALL.keys))
        _equal("masked weights", weights[~allowed.expand_as(weights)].abs().sum(), torch.zeros(()))
        if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()):
            raise AssertionError(f"weights of {type(normalizer).__name__} are negative or not finite under {case.mask}")


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
