"""Leading axes broadcast on every backend: one key head for many query heads, a batch of one, missing axes."""

import pytest
import torch
from torch import Tensor

from regard.algebra import catalog
from regard.compute import catalog_cases, verification
from regard.compute.backends import BACKENDS
from regard.compute.catalog_cases import CatalogCase
from regard.compute.kernels import native
from regard.compute.kernels.additive import additive_scores
from regard.compute.kernels.few_queries import few_queries_attention
from regard.compute.kernels.fused import fused_attention, fused_attention_with_total
from regard.compute.kernels.monotonic import align_expected
from regard.compute.verification import Leads, build_parts

INFERENCE_ONLY = [name for name, backend in BACKENDS.items() if not backend.has_backward]
SIZES = verification.SMALL
LEADS: dict[str, Leads] = {
    "one key head for many query heads": ((2, 3), (2, 1), (2, 1)),
    "a batch of one for all queries": ((1, 3), (2, 3), (2, 3)),
    "no leads of keys": ((2, 3), (), ()),
    "no batch of keys": ((2, 3), (3,), (3,)),
    "no leads of queries": ((), (2, 3), (2, 3)),
    "keys lack heads, values the batch": ((2, 3), (2, 1), (1, 3)),
    "values lack all": ((2, 3), (2, 3), ()),
    "queries have the batch, keys the heads": ((2, 1), (1, 3), (2, 3)),
}
# One for each way into a kernel.
KERNELS = (
    CatalogCase("dot", "none", "full", "softmax", "soft"),
    CatalogCase("dot", "dense", "causal", "softmax", "soft"),
    CatalogCase("scaled-dot", "alibi", "window", "softmax", "soft"),
    CatalogCase("dot", "none", "table", "local-p", "soft"),
    CatalogCase("additive", "none", "lengths", "softmax", "soft"),
    CatalogCase("dot", "none", "documents", "sparsemax", "soft"),
    CatalogCase("gaussian", "none", "causal", "entmax", "soft"),
    CatalogCase("dot", "none", "full", "monotonic", "soft"),
    CatalogCase("features", "none", "causal", "row-total", "soft"),
    CatalogCase("laplacian", "none", "prefix", "softmax", "soft"),
)


def spread(tensors: tuple[Tensor, ...]) -> list[Tensor]:
    """Return the tensors with all leading axes written out; gradients arrive at the originals, summed."""
    return [tensor.expand(*SIZES.lead, *tensor.shape[-2:]).clone() for tensor in tensors]


def agree(case: CatalogCase, leads: Leads) -> None:
    parts, tensors = build_parts(case, SIZES), verification.draw_inputs(SIZES, leads=leads)
    true = verification.run_backend(parts, spread(tensors), "eager")
    slopes = verification.compute_gradients(parts, tensors, true)
    for backend in ("eager", *verification.find_supported_backends(parts, SIZES)):
        found = verification.run_backend(parts, tensors, backend)
        assert verification.measure_difference(found.output, true.output) <= verification.VALUE, (backend, leads)
        pairs = zip(verification.compute_gradients(parts, tensors, found), slopes, strict=True)
        assert (
            verification.find_worst(verification.measure_difference(a, b) for a, b in pairs) <= verification.GRADIENT
        ), (backend, leads)
    with torch.no_grad():
        for backend in INFERENCE_ONLY:
            if backend in verification.find_supported_backends(parts, SIZES):
                found = verification.run_backend(parts, tensors, backend)
                assert verification.measure_difference(found.output, true.output) <= verification.VALUE, (
                    backend,
                    leads,
                )


@pytest.mark.parametrize("name", LEADS)
@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_every_kernel_broadcasts_leads(case: CatalogCase, name: str) -> None:
    agree(case, LEADS[name])


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("number", range(len(LEADS)))
def test_every_pair_of_parts_broadcasts_leads(number: int) -> None:
    """Each case with one kind of leads, and the next one with the next."""
    kinds = list(LEADS.values())
    for place, case in enumerate(catalog_cases.choose_pairwise_cases()):
        if place % len(kinds) == number:
            agree(case, kinds[(place // len(kinds) + number) % len(kinds)])


@pytest.mark.skipif(native.load_library() is None, reason="no compiler here")
@pytest.mark.parametrize("name", LEADS)
def test_every_kernel_that_is_called_by_itself_broadcasts_leads(name: str) -> None:
    tensors = verification.draw_inputs(
        catalog.Sizes(query=5, key=5, value=5, lead=(2, 3), queries=4, keys=6), leads=LEADS[name]
    )
    query, key, value = (tensor.detach() for tensor in tensors)
    wide = [tensor.expand(2, 3, *tensor.shape[-2:]).clone() for tensor in (query, key, value)]
    allowed = torch.rand(3, 1, 6) < 0.7
    torch.testing.assert_close(
        few_queries_attention(query, key, value, allowed=allowed),
        few_queries_attention(*wide, allowed=allowed.expand(2, 3, 4, 6)),
    )
    torch.testing.assert_close(fused_attention(query, key, value).output, fused_attention(*wide).output)
    torch.testing.assert_close(fused_attention_with_total(query, key, value)[1], fused_attention_with_total(*wide)[1])
    for lead in ((), (3,), (1,), (2, 1), (1, 3)):
        weight = torch.randn(*lead, 5, dtype=torch.float64)
        true = additive_scores(*wide[:2], weight.expand(2, 3, 5).clone())
        torch.testing.assert_close(additive_scores(query, key, weight).expand(true.shape), true)


@pytest.mark.parametrize("lead", [(), (3,), (2, 1), (2, 3), (1, 1)], ids=str)
def test_where_monotonic_queries_start_broadcasts_leads(lead: tuple[int, ...]) -> None:
    scores, previous = torch.randn(3, 4, 6, dtype=torch.float64), torch.rand(*lead, 6, dtype=torch.float64)
    wide = torch.broadcast_shapes(lead, (3,))
    true = align_expected(scores.expand(*wide, 4, 6).clone(), None, previous.expand(*wide, 6).clone())
    torch.testing.assert_close(align_expected(scores, None, previous), true)
