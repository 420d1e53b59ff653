"""The output is the weights times the values wherever the aggregate is soft, and every view of the weights is of those.

Every two parts of the catalog meet. Each case has a dtype, leading axes that broadcast in one way, and a key that may
be NaN; these take turns, so that each part meets all of them.
"""

import contextlib
import itertools
from typing import NamedTuple

import pytest
import torch

from regard.algebra import catalog
from regard.algebra.shapes import Tensor
from regard.compute import catalog_cases, verification
from regard.compute.attend import AttentionResult
from regard.compute.catalog_cases import CatalogCase, choose_pairwise_cases
from regard.compute.verification import SMALL, Leads, build_parts
from regard.errors import PlanError
from tests.contracts.test_leads import LEADS

pytestmark = pytest.mark.usefixtures("as_installed")
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
# Roundings of a sum of products, and of weights from scores of about 10, in the dtype of the values. Torch's
# exponential brings a few in float32.
ROUNDINGS = {torch.float64: 64, torch.float32: 64, torch.bfloat16: 8, torch.float16: 16}
BROKEN = 4  # the key that is NaN
SHARES = 8  # tests, each with every eighth case


class Setting(NamedTuple):
    """What a case is computed in."""

    case: CatalogCase
    dtype: torch.dtype
    leads: Leads
    broken: bool
    grad: bool


def list_settings() -> list[Setting]:
    """Return every case with one setting of each kind; row totals only of positive scores, or they may be near 0."""
    names = [list(catalog.FAMILIES[family]) for family in catalog_cases.FAMILIES[:-1]]
    cases = [case for case in choose_pairwise_cases([*names, ["soft"]]) if case.normalizer != "row-total"]
    cases += choose_pairwise_cases([["features"], ["none"], list(catalog.MASKS), ["row-total"], ["soft"]])
    leads = [(SMALL.lead,) * 3, *LEADS.values(), ((), (), SMALL.lead), ((3,), (3,), SMALL.lead)]
    turns = zip(itertools.cycle(DTYPES), itertools.cycle(leads), itertools.cycle((False, False, True, True, True)))
    manners = itertools.cycle((True, False, False, True, False, True, False))
    return [
        Setting(case, dtype, lead, broken, grad)
        for case, (dtype, lead, broken), grad in zip(cases, turns, manners, strict=False)
    ]


def compute(setting: Setting) -> list[tuple[str, AttentionResult, Tensor]]:
    """Return what every backend that supports a setting computes, and the values."""
    case, dtype, leads, broken, grad = setting
    parts = build_parts(case, SMALL, dtype=dtype)
    query, key, value = (tensor.detach() / 2 for tensor in verification.draw_inputs(SMALL, dtype=dtype, leads=leads))
    if broken:
        key[..., BROKEN, :] = float("nan")
    tensors = [tensor.requires_grad_(grad) for tensor in (query, key, value)]
    with contextlib.nullcontext() if grad else torch.no_grad():
        able = [
            name for name in verification.find_supported_backends(parts, SMALL, dtype=dtype) if name != "flex"
        ]  # which traces for long
        found = []
        for name in ("auto", "eager", *able):
            # One that is asked for by name may refuse keys that are NaN; "auto" and "eager" may not.
            with contextlib.suppress(PlanError) if name in able else contextlib.nullcontext():
                found.append((name, verification.run_backend(parts, tensors, name), value.detach()))  # type: ignore[arg-type]
    return found


def check(name: str, found: Tensor, true: Tensor, allowed: Tensor | float) -> None:
    """Fail where two tables differ by more than is allowed, or one alone is NaN."""
    assert found.shape == true.shape, (name, tuple(found.shape), tuple(true.shape))
    found, true = found.detach().double(), true.detach().double()
    assert torch.equal(found.isnan(), true.isnan()), f"{name}: NaN in one alone"
    gap = torch.where(true.isnan(), 0.0, (found - true).abs())
    assert bool((gap <= torch.as_tensor(allowed).nan_to_num(float("inf"))).all()), f"{name}: off by {gap.max():.1e}"


def check_product(attended: AttentionResult, value: Tensor) -> None:
    dense, value = attended.weights.dense().double(), value.double()
    assert dense.shape == attended.weights.shape == (*attended.output.shape[:-1], SMALL.keys), dense.shape
    size = dense.abs() @ value.abs() + 0.1 * value.abs().max()
    check("output", attended.output, dense @ value, compute_rounding(attended.output.dtype) * size)


def compute_rounding(dtype: torch.dtype) -> float:
    return ROUNDINGS[dtype] * torch.finfo(dtype).eps


def check_views(attended: AttentionResult) -> None:
    """Check that tiles, the largest, entropy and what is received are those of the dense table."""
    weights = attended.weights
    dense = weights.dense().detach()
    allowed = compute_rounding(attended.output.dtype)
    summary = weights.summary(3)
    check("tile", weights.tile(slice(2, 6), slice(3, 9)), dense[..., 2:6, 3:9], allowed)
    check("top", weights.top(3).weights, dense.topk(3, -1).values, allowed)
    check("keys of top", dense.gather(-1, summary.top.keys), summary.top.weights, allowed)
    entropy = torch.special.entr(dense).sum(-1)
    check("entropy", weights.entropy(), entropy, 10 * allowed)  # steep next to nothing
    check("received", weights.received_weight(), dense.sum(-2), SMALL.queries * allowed)
    for one, other in zip(
        (summary.entropy, summary.received), (weights.entropy(), weights.received_weight()), strict=True
    ):
        check("summary", one, other, allowed)


@pytest.mark.parametrize("share", range(SHARES))
def test_the_output_is_the_weights_times_the_values(share: int) -> None:
    for setting in list_settings()[share::SHARES]:
        for backend, attended, value in compute(setting):
            try:
                check_product(attended, value)
                check_views(attended)
            except AssertionError as error:
                raise AssertionError(f"{setting} by {backend}: {error}") from None
