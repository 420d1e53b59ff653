"""Leading axes broadcast on every backend: one key head for many query heads, a batch of one, missing axes."""

import pytest
import torch
from torch import Tensor

from regard import catalog, verify
from regard.numerics import native
from regard.numerics.additive import additive_scores
from regard.numerics.few import few
from regard.numerics.fused import fused, fused_with_total
from regard.numerics.monotonic import expected
from regard.verify import Case, Leads, build

SIZES = verify.SMALL
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
    Case("dot", "none", "full", "softmax", "soft"),
    Case("dot", "dense", "causal", "softmax", "soft"),
    Case("scaled-dot", "alibi", "window", "softmax", "soft"),
    Case("dot", "none", "table", "local-p", "soft"),
    Case("additive", "none", "lengths", "softmax", "soft"),
    Case("dot", "none", "documents", "sparsemax", "soft"),
    Case("gaussian", "none", "causal", "entmax", "soft"),
    Case("dot", "none", "full", "monotonic", "soft"),
    Case("features", "none", "causal", "row-total", "soft"),
    Case("laplacian", "none", "prefix", "softmax", "soft"),
)


def spread(tensors: tuple[Tensor, ...]) -> list[Tensor]:
    """The same with all leading axes written out; gradients arrive at the originals, summed."""
    return [tensor.expand(*SIZES.lead, *tensor.shape[-2:]).clone() for tensor in tensors]


def agree(case: Case, leads: Leads) -> None:
    parts, tensors = build(case, SIZES), verify.inputs(SIZES, leads=leads)
    true = verify.run(parts, spread(tensors), "eager")
    slopes = verify.gradients(parts, tensors, true)
    for backend in ("eager", *verify.able(parts, SIZES)):
        found = verify.run(parts, tensors, backend)
        assert verify.difference(found.output, true.output) <= verify.VALUE, (backend, leads)
        pairs = zip(verify.gradients(parts, tensors, found), slopes, strict=True)
        assert verify.worst(verify.difference(a, b) for a, b in pairs) <= verify.GRADIENT, (backend, leads)
    with torch.no_grad():
        for backend in verify.WITHOUT_GRADIENT:
            if backend in verify.able(parts, SIZES):
                found = verify.run(parts, tensors, backend)
                assert verify.difference(found.output, true.output) <= verify.VALUE, (backend, leads)


@pytest.mark.parametrize("name", LEADS)
@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_every_kernel_broadcasts_leads(case: Case, name: str) -> None:
    agree(case, LEADS[name])


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("number", range(len(LEADS)))
def test_every_pair_of_parts_broadcasts_leads(number: int) -> None:
    """Each case with one kind of leads, and the next one with the next."""
    kinds = list(LEADS.values())
    for place, case in enumerate(verify.pairwise()):
        if place % len(kinds) == number:
            agree(case, kinds[(place // len(kinds) + number) % len(kinds)])


@pytest.mark.skipif(native.library() is None, reason="no compiler here")
@pytest.mark.parametrize("name", LEADS)
def test_every_kernel_that_is_called_by_itself_broadcasts_leads(name: str) -> None:
    tensors = verify.inputs(catalog.Sizes(query=5, key=5, value=5, lead=(2, 3), queries=4, keys=6), leads=LEADS[name])
    query, key, value = (tensor.detach() for tensor in tensors)
    wide = [tensor.expand(2, 3, *tensor.shape[-2:]).clone() for tensor in (query, key, value)]
    allowed = torch.rand(3, 1, 6) < 0.7
    torch.testing.assert_close(few(query, key, value, allowed=allowed), few(*wide, allowed=allowed.expand(2, 3, 4, 6)))
    torch.testing.assert_close(fused(query, key, value).output, fused(*wide).output)
    torch.testing.assert_close(fused_with_total(query, key, value)[1], fused_with_total(*wide)[1])
    for lead in ((), (3,), (1,), (2, 1), (1, 3)):
        weight = torch.randn(*lead, 5, dtype=torch.float64)
        true = additive_scores(*wide[:2], weight.expand(2, 3, 5).clone())
        torch.testing.assert_close(additive_scores(query, key, weight).expand(true.shape), true)


@pytest.mark.parametrize("lead", [(), (3,), (2, 1), (2, 3), (1, 1)], ids=str)
def test_where_monotonic_queries_start_broadcasts_leads(lead: tuple[int, ...]) -> None:
    scores, previous = torch.randn(3, 4, 6, dtype=torch.float64), torch.rand(*lead, 6, dtype=torch.float64)
    wide = torch.broadcast_shapes(lead, (3,))
    true = expected(scores.expand(*wide, 4, 6).clone(), None, previous.expand(*wide, 6).clone())
    torch.testing.assert_close(expected(scores, None, previous), true)
