"""How tensors lie in memory changes no number: any strides, views that repeat or overlap, on every backend."""

import itertools
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import pytest
import torch
from torch import Tensor

from regard import Mask, attend
from regard.algebra import biases
from regard.algebra.parts import Parts
from regard.compute import catalog_cases, verification
from regard.compute.backends import BACKENDS
from regard.compute.catalog_cases import CatalogCase
from regard.compute.planning import BackendName
from regard.compute.verification import build_parts


def _overlap_rows(numbers: Tensor) -> Tensor:
    """Return rows that share all but one of their numbers, and leads that share all but two."""
    strides = (*range(numbers.dim() - 1, 1, -1), 1, 1)
    return numbers.flatten().repeat(4).as_strided(numbers.shape, strides, 1)


def _set_odd_strides(numbers: Tensor) -> Tensor:
    """Return the numbers with odd strides along axes of size one, which may have any."""
    view = numbers[..., :1].expand(numbers.shape) if numbers.shape[-1] == 1 else numbers
    first = view[:1].as_strided((1, *view.shape[1:]), (7, *view.stride()[1:]))
    return first.expand(view.shape)


def _negate_lazily(numbers: Tensor) -> Tensor:
    """Return numbers that torch only notes as negated: the memory holds the opposite."""
    return torch._neg_view(-numbers)


LAYOUTS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda t: t.mT.contiguous().mT,
    "every second number": lambda t: torch.stack([t, t + 1], -1).flatten(-2)[..., ::2],
    "every second row": lambda t: torch.stack([t, t + 1], -2).flatten(-3, -2)[..., ::2, :],
    "one row for all": lambda t: t[..., :1, :].expand(t.shape),
    "one column for all": lambda t: t[..., :1].expand(t.shape),
    "one lead for all": lambda t: t[:1].expand(t.shape),
    "one number for all": lambda t: t[(0,) * t.dim()].expand(t.shape),
    "overlapping": _overlap_rows,
    "at an offset": lambda t: torch.cat([t.new_zeros(3), t.flatten()])[3:].view(t.shape),
    "heads behind rows": lambda t: t.transpose(0, -2).contiguous().transpose(0, -2),
    "last axis first": lambda t: t.movedim(-1, 0).contiguous().movedim(0, -1),
    "odd where one": _set_odd_strides,
    "to be negated": _negate_lazily,
}
WHO: Sequence[tuple[bool, bool, bool]] = (
    (True, False, False),
    (False, True, False),
    (False, False, True),
    (True, True, True),
)
# One for each way into a kernel: the fused one, in windows, with totals, ours for scores, rows, sums and few queries.
INFERENCE_ONLY = [name for name, backend in BACKENDS.items() if not backend.has_backward]
KERNELS = (
    CatalogCase("dot", "none", "full", "softmax", "soft"),
    CatalogCase("dot", "dense", "causal", "softmax", "soft"),
    CatalogCase("scaled-dot", "alibi", "window", "softmax", "soft"),
    CatalogCase("dot", "none", "causal", "local-p", "soft"),
    CatalogCase("dot", "none", "full", "softmax-plus-one", "soft"),
    CatalogCase("additive", "none", "full", "softmax", "soft"),
    CatalogCase("dot", "none", "full", "sparsemax", "soft"),
    CatalogCase("dot", "none", "causal", "entmax", "soft"),
    CatalogCase("dot", "none", "full", "monotonic", "soft"),
    CatalogCase("features", "none", "causal", "row-total", "soft"),
    CatalogCase("laplacian", "none", "full", "softmax", "soft"),
)
MIXED = list(itertools.product(LAYOUTS, WHO))
SIZES = verification.SMALL


def lay_inputs(
    layout: str, who: Sequence[bool], dtype: torch.dtype = torch.float64
) -> tuple[list[Tensor], list[Tensor]]:
    """Return queries, keys and values, some in this layout, and the same numbers one after another."""
    drawn = [tensor.detach() for tensor in verification.draw_inputs(SIZES, dtype=dtype)]
    odd = [LAYOUTS[layout](tensor) if asked else tensor for tensor, asked in zip(drawn, who, strict=True)]
    plain = [tensor.clone(memory_format=torch.contiguous_format).resolve_neg() for tensor in odd]
    return [t.detach().requires_grad_() for t in odd], [t.requires_grad_() for t in plain]


def differ(parts: Parts, odd: list[Tensor], plain: list[Tensor], backend: BackendName) -> float:
    """Return the worst difference of outputs and gradients, relative to the size of the numbers."""
    found, true = (verification.run_backend(parts, tensors, backend) for tensors in (odd, plain))
    pairs = [(found.output, true.output)]
    if torch.is_grad_enabled():
        slopes = (verification.compute_gradients(parts, odd, found), verification.compute_gradients(parts, plain, true))
        pairs += list(zip(*slopes, strict=True))
    return verification.find_worst(verification.measure_difference(a, b) for a, b in pairs)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_every_kernel_reads_every_layout(case: CatalogCase, layout: str) -> None:
    for who, dtype in itertools.product(WHO, (torch.float64, torch.float32)):
        parts, (odd, plain) = build_parts(case, SIZES, dtype=dtype), lay_inputs(layout, who, dtype)
        allowed = verification.GRADIENT if dtype == torch.float64 else 2e-4
        for backend in ("eager", *verification.find_supported_backends(parts, SIZES)):
            assert differ(parts, odd, plain, backend) <= allowed, (backend, who, dtype)
        with torch.no_grad():
            for backend in {"sdpa", *INFERENCE_ONLY}.intersection(verification.find_supported_backends(parts, SIZES)):
                assert differ(parts, odd, plain, backend) <= allowed, (backend, who, dtype)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("number", range(13))
def test_every_pair_of_parts_reads_some_layouts(number: int) -> None:
    cases = catalog_cases.choose_pairwise_cases()
    for place, case in enumerate(cases[number::13]):
        parts = build_parts(case, SIZES)
        for layout, who in MIXED[place % len(MIXED) :: 17]:
            odd, plain = lay_inputs(layout, who)
            for backend in ("eager", *verification.find_supported_backends(parts, SIZES)):
                assert differ(parts, odd, plain, backend) <= verification.GRADIENT, (case, backend, layout, who)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_a_gradient_may_arrive_in_any_layout(case: CatalogCase, layout: str) -> None:
    parts, tensors = build_parts(case, SIZES), verification.draw_inputs(SIZES)
    for backend in ("eager", *verification.find_supported_backends(parts, SIZES)):
        output = verification.run_backend(parts, tensors, backend).output
        arriving = LAYOUTS[layout](torch.randn(output.shape, dtype=output.dtype))
        plain = arriving.clone(memory_format=torch.contiguous_format).resolve_neg()
        found = torch.autograd.grad(output, tensors, arriving, retain_graph=True, allow_unused=True)
        true = torch.autograd.grad(output, tensors, plain, allow_unused=True)
        worst = verification.find_worst(verification.measure_difference(a, b) for a, b in zip(found, true, strict=True))
        assert worst <= verification.GRADIENT, backend


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "to be negated"])
@pytest.mark.parametrize("backend", ["sdpa", "few_queries", "stream", "eager"])
def test_a_mask_and_a_bias_may_have_any_layout(layout: str, backend: BackendName) -> None:
    drawn = torch.randn(*SIZES.lead, SIZES.queries, SIZES.keys, dtype=torch.float64)
    table, seen = LAYOUTS[layout](drawn), LAYOUTS[layout]((drawn > -0.5).byte()).view(torch.bool)
    tensors = [tensor.detach() for tensor in verification.draw_inputs(SIZES)]
    with torch.no_grad():
        found = attend(*tensors, mask=Mask.keep(seen), backend=backend).output
        true = attend(*tensors, mask=Mask.keep(seen.contiguous()), backend="eager").output
        assert verification.measure_difference(found, true) <= verification.VALUE
        if backend != "few_queries":
            found = attend(*tensors, bias=biases.Dense(table), backend=backend).output
            true = attend(*tensors, bias=biases.Dense(table.contiguous()), backend="eager").output
            assert verification.measure_difference(found, true) <= verification.VALUE


COMPILED = """
import torch
from regard import Window, attend

def far(found, true):
    return float((found - true).abs().max())

def run(query, key, value):
    free, near = attend(query, key, value), attend(query, key, value, mask=Window(2, 1), backend="local")
    return torch.cat([free.output, near.output])

compiled, wide = torch.compile(run, backend="aot_eager", dynamic=False), torch.randn(2, 3, 16, 16).double()
for view in (wide.mT, wide[..., ::2], wide[..., :1].expand(2, 3, 16, 4), wide.as_strided((2, 3, 5, 8), (2, 2, 1, 1))):
    odd = [view.detach().requires_grad_() for _ in range(3)]
    plain = [view.clone(memory_format=torch.contiguous_format).requires_grad_() for _ in range(3)]
    found, true = compiled(*odd), run(*plain)
    print(far(found, true))
    found, true = torch.autograd.grad(found.sum(), odd), torch.autograd.grad(true.sum(), plain)
    print(max(far(a, b) for a, b in zip(found, true)))
"""


def test_a_compiled_graph_reads_every_layout() -> None:
    run = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=True)
    errors = [float(line) for line in run.stdout.split()]
    assert len(errors) == 8
    assert max(errors) < 1e-10


def test_the_issue() -> None:
    numbers = torch.randn(3, 8, 16).transpose(1, 2)
    plain = numbers.contiguous()
    torch.testing.assert_close(attend(numbers, numbers, numbers).output, attend(plain, plain, plain).output)


@pytest.mark.parametrize("sizes", [(2, 3, 1, 4, 3, 2), (2, 1, 5, 4, 3, 3), (3, 2, 4, 4, 4, 4)], ids=str)
def test_every_stride_gives_the_same_numbers(sizes: tuple[int, ...]) -> None:
    """Also those that make an axis of the batch step by less than a row: kernels lay results out as inputs are."""
    B, H, L, S, D, E = sizes
    memory, value = torch.randn(500, dtype=torch.float64), torch.randn(B, H, S, E, dtype=torch.float64)
    for strides in itertools.product((0, 1, 3, 7), repeat=4):
        query = memory.as_strided((B, H, L, D), strides)
        key = memory.as_strided((B, H, S, D), strides[::-1])
        found = []
        for tensors in ((query, key), (query.reshape(-1).view(query.shape), key.reshape(-1).view(key.shape))):
            wanted = [tensor.detach().requires_grad_() for tensor in tensors]
            output = attend(*wanted, value).output
            found.append([output, *torch.autograd.grad(output.square().sum(), wanted)])
        for one, other in zip(*found, strict=True):
            assert torch.allclose(one, other, rtol=0, atol=1e-10), strides
