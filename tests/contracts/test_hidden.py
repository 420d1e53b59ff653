"""What a mask hides may be anything at all: the rows that do not see it stay as they were, in value and gradient."""

import math
from typing import Any

import pytest
import torch

from regard import Causal, Cosine, Dot, Gaussian, Lengths, Mask, Window, attend
from regard.algebra import catalog
from regard.algebra.parts import Parts
from regard.algebra.shapes import Tensor
from regard.compute import catalog_cases, verification
from regard.compute.planning import BackendName
from regard.compute.verification import SMALL, build_parts, find_supported_backends
from regard.errors import PlanError

pytestmark = pytest.mark.usefixtures("as_installed")
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
MASKS = [name for name in catalog.MASKS if name != "full"]
FAMILIES = [list(catalog.SCORES), list(catalog.BIASES), MASKS, list(catalog.NORMALIZERS), ["soft"]]
CONTENTS = (1e5, 1e30, "largest", float("nan"), float("inf"))


def spoil(tensor: Tensor, hidden: Tensor, content: float | str) -> Tensor:
    """Return the tensor with other content at the keys that are hidden."""
    largest = torch.finfo(tensor.dtype).max
    number = largest if content == "largest" else float(content)
    number = min(number, largest) if number < float("inf") else number
    signs = torch.where(torch.arange(tensor.shape[-1]) % 2 == 0, 1.0, -0.5).to(tensor.dtype)
    return torch.where(hidden[..., None], signs * number, tensor.detach()).requires_grad_()


def compute_outcome(parts: Parts, tensors: list[Tensor], backend: BackendName, rows: Tensor) -> list[Tensor] | None:
    """Output, weights and gradients of the rows that are looked at; None if the backend refuses."""
    try:
        found = verification.run_backend(parts, tensors, backend)
    except PlanError:
        return None
    mixture = torch.linspace(-1, 1, found.output.numel(), dtype=torch.float64).view(found.output.shape)
    loss = (found.output.double() * mixture).masked_fill(~rows[..., None], 0.0).sum()
    wanted = [tensor for tensor in (tensors[0], *parts.tensors()) if tensor.requires_grad]
    grads = [None] * len(wanted)
    if loss.requires_grad:
        grads = list(torch.autograd.grad(loss, wanted, allow_unused=True))  # type: ignore[arg-type]
    weights = found.weights.dense()
    kept = [torch.zeros(()) if grad is None else grad for grad in grads]
    return [found.output[rows].detach(), weights[rows].detach(), *kept]


def find_conditions(parts: Parts, clean: list[Tensor]) -> list[Tensor]:
    """Return how many times larger a rounding of the scores is in each outcome; 1 for all but sums of both signs.

    w = s / T with T = Σ s: scores that are off by a share u each move T by up to u Σ|s|, so w by a share of
    u (1 + Σ|s| / |T|), and Σ|s| / |T| = Σ|w| of the row. The gradient, (δ − w) / T, has the same factor; that of a
    tensor that all rows share has the factor of the worst row.
    """
    if parts.normalizer.form != "row-total":
        return [torch.ones(())] * len(clean)
    rows = clean[1].double().abs().sum(-1, keepdim=True).clamp_min(1.0)
    return [rows, rows, *[rows.max()] * (len(clean) - 2)]


def close(one: Tensor, other: Tensor, dtype: torch.dtype, condition: Tensor) -> bool:
    """Within 64 roundings, or as many as a row's dot products and sum have times its condition, if that is more."""
    size = float(other.double().abs().max()) if other.numel() else 0.0
    allowance = (condition * (SMALL.key + SMALL.keys)).clamp_min(64) * torch.finfo(dtype).eps * max(1.0, size)
    return bool(((one.double() - other.double()).abs() <= allowance).all())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("part", range(6))
def test_hidden_keys_and_values_do_not_matter(part: int, dtype: torch.dtype) -> None:
    """The metamorphic test: every pair of score, bias, mask and normalizer, on every backend that takes it."""
    compared = 0
    for number, case in list(enumerate(catalog_cases.choose_pairwise_cases(FAMILIES)))[part::6]:
        if case.normalizer == "row-total" and dtype.itemsize == 2:  # its total may be next to nothing
            continue
        parts = build_parts(case, SMALL, dtype=dtype)
        table = parts.mask.table(SMALL.queries, SMALL.keys).expand(*SMALL.lead, SMALL.queries, SMALL.keys)
        content = CONTENTS[number % len(CONTENTS)]
        column = SMALL.keys - 2
        hidden = torch.zeros(*SMALL.lead, SMALL.keys, dtype=torch.bool)
        hidden[..., column] = True
        hidden |= ~table.any(-2)
        rows = ~(table & hidden[..., None, :]).any(-1)
        if parts.normalizer.form == "sequential":
            rows = (~rows).long().cumsum(-1) == 0
        for backend in ["eager", *find_supported_backends(parts, SMALL, dtype=dtype)]:
            query, key, value = verification.draw_inputs(SMALL, dtype=dtype)
            clean = compute_outcome(parts, [query, key, value], backend, rows)
            dirty = compute_outcome(
                parts, [query, spoil(key, hidden, content), spoil(value, hidden, content)], backend, rows
            )
            if clean is None or dirty is None:
                continue
            both = list(zip(dirty, clean, strict=True))
            if dtype == torch.float64 and content == "largest":  # nothing is wider: gradients up to 1e150 only
                both = both[:2]
            conditions = find_conditions(parts, clean)
            wrong = [i for i, (a, b) in enumerate(both) if not close(a, b, dtype, conditions[i])]
            assert not wrong, (case, backend, content, wrong)
            compared += 1
    assert compared > 10


@pytest.mark.parametrize("content", [1e5, 1e30, 3e38])
@pytest.mark.parametrize("score", [Dot(), Gaussian(), Cosine()], ids=repr)
@pytest.mark.parametrize(
    "mask",
    [Causal(), Lengths(torch.tensor(4)), Window(2, 0), Mask.drop(torch.tensor([[False] * 4 + [True]]))],
    ids=repr,
)
def test_a_hidden_key_of_any_size_changes_nothing_on_the_default_path(mask: Mask, score: Any, content: float) -> None:
    query, key, value = (torch.randn(5, 3) for _ in range(3))
    clean = attend(query, key, value, mask=mask, score=score)
    spoilt_key, spoilt_value = key.clone(), value.clone()
    spoilt_key[4], spoilt_value[4] = content, -content
    dirty = attend(query, spoilt_key, spoilt_value, mask=mask, score=score)
    torch.testing.assert_close(dirty.output[:4], clean.output[:4], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(dirty.weights.dense()[:4], clean.weights.dense()[:4], rtol=1e-5, atol=1e-6)


def test_a_visible_key_of_any_size_is_still_read() -> None:
    """The way for huge numbers is the definition, in float64: a query that sees one is not given NaN."""
    query, key, value = torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 3)
    key[2] = torch.tensor([3e38, 0.0, 0.0])
    query[:, 0] = -query[:, 0].abs()
    found = attend(query, key, value, mask=Causal())
    true = attend(query.double(), key.double(), value.double(), mask=Causal(), backend="eager")
    assert found.plan.precision == torch.float64
    assert "float64" in found.plan.explain()
    torch.testing.assert_close(found.output.double(), true.output, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("backend", ["auto", "sdpa", "local", "stream", "eager"])
@pytest.mark.parametrize("mask", [None, Causal(), Window(1, 1), Lengths(torch.tensor(2))], ids=repr)
def test_a_broken_query_is_told(mask: Mask | None, backend: Any) -> None:
    """torch's fused kernel gives zeros where all scores of a row are NaN."""
    query, key, value = torch.randn(3, 2), torch.randn(3, 2), torch.randn(3, 2)
    query[1, 0] = float("nan")
    found = attend(query, key, value, backend=backend, **({} if mask is None else {"mask": mask}))
    assert torch.isnan(found.output[1]).all()
    assert torch.isfinite(found.output[[0, 2]]).all()
    assert torch.isnan(found.weights.dense()[1] @ value).all()
    lone = attend(query[:1], torch.full((3, 2), float("nan")), value, backend=backend)
    assert torch.isnan(lone.output).all()


def test_a_row_that_sees_a_broken_key_has_neither_output_nor_weights() -> None:
    query, key, value = torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 2)
    key[2, 1] = float("nan")
    for backend in ("auto", "eager", "stream"):
        found = attend(query, key, value, mask=Causal(), backend=backend)  # type: ignore[arg-type]
        dense = found.weights.dense()
        assert torch.isnan(found.output[2:]).all()
        assert torch.isnan(dense[2:]).all()
        assert torch.isnan(found.weights.tile(slice(2, 3), slice(0, 1))).all()
        assert torch.isnan(found.weights.entropy()[2:]).all()
        torch.testing.assert_close(dense[:2] @ torch.nan_to_num(value), found.output[:2])
        assert torch.isfinite(found.weights.entropy()[:2]).all()


@pytest.mark.parametrize("content", [math.nan, math.inf])
def test_hidden_values_leave_the_center_of_visible_keys(content: float) -> None:
    """Keys far from zero are centered; a hidden one at zero would move the center away and cost their digits."""
    query, key, value = (torch.randn(4, 2).mul_(1e-3).add_(1e4) for _ in range(3))
    hidden = torch.tensor([False, False, True, True])[:, None]
    score, mask = Gaussian.learned(1.0), Lengths(torch.tensor(2))
    clean = attend(query, key, value, score=score, mask=mask)
    found = attend(query, *(t.masked_fill(hidden, content) for t in (key, value)), score=score, mask=mask)
    assert found.plan.explain() == clean.plan.explain()
    slopes = [torch.autograd.grad(one.output.sum(), score.bandwidth)[0] for one in (found, clean)]
    assert torch.equal(*slopes)
