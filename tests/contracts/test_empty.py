"""An empty row is zero in value and gradient, and what is masked never leaks, in any backend, dtype and normalizer."""

import pytest
import torch

from regard import Lengths, Mask, Window, attend
from regard.algebra import catalog
from regard.algebra.entries import make_lengths
from regard.compute import catalog_cases, verification
from regard.compute.catalog_cases import CatalogCase
from regard.compute.verification import SMALL, build_parts, find_supported_backends

FAMILIES = [
    list(catalog.SCORES),
    list(catalog.BIASES),
    ["lengths"],
    list(catalog.NORMALIZERS),
    list(catalog.AGGREGATES),
]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
BROKEN = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("case", catalog_cases.choose_pairwise_cases(FAMILIES), ids=str)
def test_an_empty_row_is_zero_in_value_weight_and_gradient(case: CatalogCase, dtype: torch.dtype) -> None:
    parts = build_parts(case, SMALL, dtype=dtype)
    for backend in ["eager", *find_supported_backends(parts, SMALL, dtype=dtype)]:
        tensors = verification.draw_inputs(SMALL, dtype=dtype)
        attended = verification.run_backend(parts, tensors, backend)
        assert (attended.output[-1] == 0).all(), backend
        assert (attended.weights.dense()[-1] == 0).all(), backend
        grads = verification.compute_gradients(parts, tensors, attended)
        for tensor, grad in zip(tensors, grads[:3], strict=True):
            if grad is not None:
                assert (grad[-1] == 0).all(), (backend, tensor.shape)
        if dtype != torch.float16:  # there 1/weight and 1/total overflow in rows that are not empty
            assert all(grad is None or torch.isfinite(grad).all() for grad in grads), backend


@pytest.mark.parametrize("broken", BROKEN, ids=str)
@pytest.mark.parametrize("case", catalog_cases.choose_pairwise_cases(FAMILIES)[::2], ids=str)
def test_what_padding_holds_does_not_matter(case: CatalogCase, broken: float) -> None:
    parts = build_parts(case, SMALL)
    lengths = make_lengths(SMALL)
    padding = torch.arange(SMALL.keys) >= lengths[..., None]
    for backend in ["eager", *find_supported_backends(parts, SMALL)]:
        query, key, value = verification.draw_inputs(SMALL)
        clean = verification.run_backend(parts, (query, key, value), backend)
        hole = padding[..., None].expand_as(key)
        bad_key = key.detach().masked_fill(hole, broken).requires_grad_()
        bad_value = value.detach().masked_fill(padding[..., None].expand_as(value), broken).requires_grad_()
        dirty = verification.run_backend(parts, (query, bad_key, bad_value), backend)
        assert torch.allclose(dirty.output, clean.output, rtol=1e-12, atol=1e-12), backend
        for a, b in zip(
            verification.compute_gradients(parts, (query, bad_key, bad_value), dirty),
            verification.compute_gradients(parts, (query, key, value), clean),
            strict=True,
        ):
            assert verification.measure_difference(a, b) <= verification.GRADIENT, backend


@pytest.mark.parametrize("normalizer", [n for n in catalog.NORMALIZERS if "chunk" not in n and "monotonic" not in n])
@pytest.mark.parametrize("mask", ["causal", "causal-window", "table", "around", "prefix", "documents"])
def test_a_broken_key_reaches_only_the_queries_that_may_see_it(mask: str, normalizer: str) -> None:
    case = CatalogCase("scaled-dot", "none", mask, normalizer, "soft")
    parts = build_parts(case, SMALL)
    seen = parts.mask.table(SMALL.queries, SMALL.keys).expand(*SMALL.lead, SMALL.queries, SMALL.keys)
    column = SMALL.keys - 3
    for backend in ["eager", *find_supported_backends(parts, SMALL)]:
        query, key, value = (tensor.detach() for tensor in verification.draw_inputs(SMALL))
        clean = verification.run_backend(parts, (query, key, value), backend).output
        value[..., column, :] = float("nan")
        dirty = verification.run_backend(parts, (query, key, value), backend).output
        exposed = seen[..., column]
        assert torch.isnan(dirty[exposed]).all(), backend
        assert torch.allclose(dirty[~exposed], clean[~exposed], rtol=1e-12, atol=1e-12), backend


def test_a_window_that_leaves_the_keys_is_empty() -> None:
    query, key = torch.randn(5, 3), torch.randn(2, 3)
    attended = attend(query, key, key, mask=Window(before=0, after=0))
    assert (attended.output[:3] == 0).all()
    assert torch.allclose(attended.output[3:], key)


def test_length_zero_of_a_single_sequence() -> None:
    query, key = torch.randn(2, 3), torch.full((4, 3), float("nan"))
    attended = attend(query, key, key, mask=Lengths(torch.tensor(0)))
    assert (attended.output == 0).all()
    assert (attended.weights.entropy() == 0).all()
    assert (attended.weights.received_weight() == 0).all()


def test_one_query_one_key() -> None:
    query, key = torch.randn(1, 1), torch.randn(1, 1)
    assert torch.equal(attend(query, key, key).output, key)
    assert (attend(query, key, key, mask=Mask.drop(torch.ones(1, 1, dtype=torch.bool))).output == 0).all()
