"""A handful of queries without a gradient: what the kernel of our own promises beyond the grid."""

import pytest
import torch

from regard import Causal, Mask, Prior, attend
from regard.algebra import catalog
from regard.algebra.masks import Table
from regard.compute import catalog_cases, verification
from regard.compute.kernels import native
from regard.compute.verification import build_parts

pytestmark = pytest.mark.skipif(native.load_library() is None, reason="no compiler here")
SIZES = [
    catalog.Sizes(query=width, key=width, value=value, lead=(2, 3), queries=queries, keys=keys)
    for width, value, queries, keys in ((1, 1, 1, 1), (5, 3, 8, 2), (16, 33, 5, 31), (64, 81, 7, 40))
]
FAMILIES = [list(catalog.SCORES), list(catalog.BIASES), list(catalog.MASKS), ["softmax"], ["soft"]]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_size_agrees_with_the_definition(sizes: catalog.Sizes) -> None:
    tensors, paths = verification.draw_inputs(sizes), 0
    for case in catalog_cases.choose_pairwise_cases(FAMILIES):
        parts = build_parts(case, sizes)
        with torch.no_grad():
            if "few_queries" in verification.find_supported_backends(parts, sizes):
                error = verification.measure_value_error(
                    verification.run_backend(parts, tensors, "few_queries"),
                    verification.compute_reference(parts, tensors),
                )
                assert error <= verification.VALUE, case
                paths += 1
    assert paths > 50


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")], ids=str)
def test_what_is_hidden_is_not_read_and_what_is_seen_is(broken: float) -> None:
    query, key, value = (torch.randn(2, 3, 5, 6) for _ in range(3))
    seen = torch.rand(2, 3, 5, 5) < 0.6
    seen[0, 0, 1] = False
    with torch.no_grad():
        clean = attend(query, key, value, mask=Table(seen), backend="few_queries")
        weights = clean.weights.dense()
        for place in (key, value):
            kept = place[..., 2, :].clone()
            place[..., 2, :] = broken
            dirty = attend(query, key, value, mask=Table(seen), backend="few_queries")
            spoiled = dirty.weights.dense()
            place[..., 2, :] = kept
            exposed = seen[..., 2]
            assert not torch.isfinite(dirty.output[exposed]).any()
            assert torch.equal(dirty.output[~exposed], clean.output[~exposed])
            assert torch.equal(spoiled[~exposed], weights[~exposed])
        assert (clean.output[0, 0, 1] == 0).all()


@pytest.mark.parametrize(
    "mask", [Causal(), Mask.keep(torch.tensor([[True, True, False, True]]))], ids=["causal", "row"]
)
def test_rows_that_are_not_next_to_each_other_are_read_where_they_are(mask: Mask) -> None:
    wide = torch.randn(2, 4, 3, 12)
    query, key, value = (part.transpose(1, 2) for part in wide.split(4, dim=-1))
    skewed = value.transpose(-1, -2).contiguous().transpose(-1, -2)
    with torch.no_grad():
        found = attend(query, key, skewed, mask=mask, backend="few_queries").output
        true = attend(query.double(), key.double(), value.double(), mask=mask, backend="eager").output
    torch.testing.assert_close(found, true.float())


def test_a_prior_of_nothing_is_no_broken_key() -> None:
    query, key = torch.randn(2, 3, 5), torch.randn(2, 7, 5)
    prior = Prior(torch.tensor([0.0, -1.0, float("-inf"), 2.0, 0.0, 0.0, 0.0]))
    with torch.no_grad():
        found, true = (attend(query, key, key, bias=prior, mask=Causal(), backend=by) for by in ("auto", "eager"))
    torch.testing.assert_close(found.output, true.output)


def test_it_is_chosen_for_few_queries_that_want_no_gradient_under_a_mask() -> None:
    few, many = torch.randn(2, 8, 4), torch.randn(2, 9, 4)
    with torch.no_grad():
        assert attend(few, many, many, mask=Causal()).plan.backend == "few_queries"
        assert attend(many, many, many, mask=Causal()).plan.backend == "sdpa"
        assert attend(few, many, many).plan.backend == "sdpa"
        assert attend(few, many, many, mask=Causal(), dropout=0.5).plan.backend != "few_queries"
    assert attend(few, many, many, mask=Causal()).plan.backend == "sdpa"
