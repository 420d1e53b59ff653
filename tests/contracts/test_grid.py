"""Every combination of the catalog, by every backend that can compute it, equals its definition."""

import itertools

import pytest
import torch

from regard import attend
from regard.algebra import catalog
from regard.compute import catalog_cases, verification
from regard.compute.catalog_cases import CatalogCase
from regard.compute.planning import BackendName
from regard.compute.verification import build_parts, compare_backends

WIDE = verification.SMALL._replace(query=5, key=3)
TALL = verification.SMALL._replace(queries=13, keys=7, lead=(3,))
TWO_WIDTHS = ("additive", "concat", "bilinear", "low-rank", "location")


def agree(case: CatalogCase, sizes: catalog.Sizes, dropout: float = 0.0) -> int:
    """Compare all paths, and return how many there were."""
    errors = list(compare_backends(case, build_parts(case, sizes), sizes, dropout=dropout))
    wrong = [error for error in errors if not error.within_tolerance]
    assert not wrong, wrong
    return len(errors)


@pytest.mark.parametrize("case", catalog_cases.choose_pairwise_cases(), ids=str)
def test_every_pair_of_parts_agrees_with_the_definition(case: CatalogCase) -> None:
    agree(case, verification.SMALL)


@pytest.mark.usefixtures("as_installed")  # the tests above and below check the shapes of the same parts
@pytest.mark.parametrize("score", catalog.SCORES)
@pytest.mark.parametrize("normalizer", catalog.NORMALIZERS)
def test_the_full_product_agrees_with_the_definition(score: str, normalizer: str) -> None:
    tiny = catalog.Sizes(query=3, key=3, value=2, lead=(2,), queries=3, keys=5)
    paths = sum(
        agree(CatalogCase(score, "none", mask, normalizer, reading), tiny)
        for mask, reading in itertools.product(catalog.MASKS, catalog.AGGREGATES)
    )
    if catalog.NORMALIZERS[normalizer](tiny).form != "sequential":
        assert paths >= len(catalog.MASKS) * len(catalog.AGGREGATES)


@pytest.mark.parametrize(
    "case",
    catalog_cases.choose_pairwise_cases([list(TWO_WIDTHS), *map(list, list(catalog.FAMILIES.values())[1:])]),
    ids=str,
)
def test_query_and_key_may_have_different_widths(case: CatalogCase) -> None:
    agree(case, WIDE)


@pytest.mark.parametrize("case", catalog_cases.choose_pairwise_cases()[::3], ids=str)
def test_more_queries_than_keys_is_no_special_case(case: CatalogCase) -> None:
    agree(case, TALL)


@pytest.mark.parametrize("case", catalog_cases.choose_pairwise_cases()[::2], ids=str)
def test_dropout_drops_the_same_pairs_in_every_backend(case: CatalogCase) -> None:
    agree(case, verification.SMALL, dropout=0.3)


@pytest.mark.parametrize("backend", ["eager", "stream", "rows"])
def test_dropout_keeps_the_mean_and_varies_with_the_seed(backend: BackendName) -> None:
    parts = build_parts(CatalogCase("dot", "none", "full", "softmax", "soft"), verification.SMALL)
    tensors = verification.draw_inputs(verification.SMALL)
    plain = verification.run_backend(parts, tensors, "eager").output
    runs = []
    for seed in range(200):
        torch.manual_seed(seed)
        runs.append(attend(*tensors, score=parts.score, dropout=0.4, backend=backend).output)
    stacked = torch.stack(runs).detach()
    spread = stacked.std(0) / len(runs) ** 0.5
    assert (stacked.std(0) > 0).all()
    assert ((stacked.mean(0) - plain).abs() <= 5 * spread).all()
