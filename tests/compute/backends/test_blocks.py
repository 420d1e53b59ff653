"""Backends that work in blocks give the same in many blocks as in one: the grid, with blocks of two queries."""

from typing import Any

import pytest
import torch

from regard import (
    Additive,
    Causal,
    CenteredWindow,
    FeatureDot,
    Gaussian,
    Laplacian,
    Lengths,
    LocalGaussian,
    Mask,
    Monotonic,
    Sample,
    Softmax,
    SoftmaxPlusOne,
    Sparsemax,
    Window,
    attend,
)
from regard.algebra.shapes import Tensor
from regard.compute import catalog_cases, verification
from regard.compute.catalog_cases import CatalogCase
from regard.compute.kernels import blocks
from regard.compute.lowering import spans
from regard.compute.planning import BackendName
from regard.compute.verification import SMALL, build_parts, compare_backends

pytestmark = pytest.mark.usefixtures("as_installed")


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "choose_rows_per_block", lambda per_row, queries: min(2, queries))
    monkeypatch.setattr(spans, "SMALLEST", 2)
    monkeypatch.setattr(spans, "LARGEST", 3)


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("part", range(8))
def test_every_pair_of_parts_agrees_in_many_blocks(part: int) -> None:
    """Values, weights, log-probabilities and all gradients, which are computed anew in the backward pass."""
    for case in catalog_cases.choose_pairwise_cases()[part::8]:
        wrong = [
            error for error in compare_backends(case, build_parts(case, SMALL), SMALL) if not error.within_tolerance
        ]
        assert not wrong, wrong


@pytest.mark.usefixtures("_small_blocks")
def test_dropout_drops_the_same_pairs_in_many_blocks() -> None:
    for case in catalog_cases.choose_pairwise_cases()[::5]:
        wrong = [
            error
            for error in compare_backends(case, build_parts(case, SMALL), SMALL, dropout=0.4)
            if not error.within_tolerance
        ]
        assert not wrong, wrong


def test_blocks_of_two_are_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above would say nothing if everything still fitted one block."""
    counted: list[int] = []
    original = blocks.run_blocks

    def spy(run: blocks.BlockFunction, spans: list[blocks.Span], *rest: Tensor) -> blocks.BlockOutput:
        counted.append(len(spans))
        return original(run, spans, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("regard.compute.backends.stream.run_blocks", spy)
    monkeypatch.setattr(spans, "choose_rows_per_block", lambda per_row, queries: min(2, queries))
    case = CatalogCase("additive", "none", "causal", "sparsemax", "sample")
    verification.run_backend(build_parts(case, SMALL), verification.draw_inputs(SMALL), "stream")
    assert counted == [4]


MASKS: dict[str, Mask] = {
    "window": Window(before=17, after=5),
    "causal window": Window(before=130, after=0),
    "window and lengths": Window(before=17, after=5) & Lengths(torch.tensor([[300], [701]])),
    "causal": Causal(),
    "around": CenteredWindow(torch.linspace(-40.0, 760.0, 601), 23),
    "empty beyond the keys": Window(before=3, after=3) & ~Lengths(torch.tensor(500)),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("score", [None, Gaussian(2.0)], ids=["dot", "gaussian"])
def test_local_blocks_of_real_size_agree_with_the_definition(name: str, score: Gaussian | None) -> None:
    """Lengths that no block size divides, fewer queries than keys, and a value narrower than the keys."""
    query, key, value = (
        torch.randn(2, 3, n, w, dtype=torch.float64, requires_grad=True) for n, w in ((601, 7), (701, 7), (701, 5))
    )
    options = {"mask": MASKS[name]} | ({} if score is None else {"score": score})
    mixture = torch.randn(2, 3, 601, 5, dtype=torch.float64)
    found: dict[BackendName, list[Tensor]] = {}
    for backend in ("eager", "local"):
        output = attend(query, key, value, backend=backend, **options).output  # type: ignore[arg-type]
        found[backend] = [output, *torch.autograd.grad((output * mixture).sum(), (query, key, value))]  # type: ignore[index]
    for one, other in zip(found["local"], found["eager"], strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "options", [{"score": Additive(7)}, {"normalizer": Sparsemax()}, {"aggregate": Sample()}], ids=str
)
def test_what_needs_no_gradient_gets_none_in_many_blocks(
    options: dict[str, Additive | Sparsemax | Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the values learn: nothing may be computed for the rest, and nothing may fail for want of it."""
    monkeypatch.setattr(spans, "choose_rows_per_block", lambda per_row, queries: min(2, queries))
    query, key, value = torch.randn(5, 7), torch.randn(11, 7), torch.randn(11, 3, requires_grad=True)
    for part in options.values():
        part.requires_grad_(False)
    output = attend(query, key, value, **options).output  # type: ignore[arg-type]
    output.sum().backward()
    assert value.grad is not None
    assert torch.allclose(value.grad.sum(), torch.tensor(5 * 3.0))


SECOND = {
    "dot": {},
    "causal": {"mask": Causal()},
    "window": {"mask": Window(2, 1), "backend": "local"},
    "around": {"mask": CenteredWindow(torch.linspace(0.0, 9.0, 5), 2), "backend": "local"},
    "gaussian": {"score": Gaussian(2.0)},
    "laplacian": {"score": Laplacian(0.5)},
    "additive": {"score": Additive(7)},
    "plus one": {"normalizer": SoftmaxPlusOne(), "mask": Causal()},
    "local-p": {"normalizer": LocalGaussian(torch.linspace(0.0, 9.0, 5, dtype=torch.float64), 1.5)},
    "sparsemax": {"normalizer": Sparsemax()},
    "monotonic": {"normalizer": Monotonic()},
}


@pytest.mark.parametrize("blocks", [2, 100])
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_are_those_of_the_definition(
    name: str, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where query, key and value are one tensor, whose gradient is the sum of its three parts."""
    monkeypatch.setattr(spans, "choose_rows_per_block", lambda per_row, queries: min(blocks, queries))
    options: Any = dict(SECOND[name])
    for part in options.values():
        if isinstance(part, torch.nn.Module):
            part.double()
    for shared in (False, True):
        query = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
        key = query if shared else torch.randn(11, 7, dtype=torch.float64, requires_grad=True)
        wanted = [query] if shared else [query, key]
        found = []
        for by in (options.get("backend", "auto"), "eager"):
            output = attend(query, key, key, **{**options, "backend": by}).output
            grads = torch.autograd.grad(output.square().sum(), wanted, create_graph=True)
            found.append(torch.autograd.grad(sum(grad.square().sum() for grad in grads), wanted))  # type: ignore[arg-type]
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rows", [2, 100])
@pytest.mark.parametrize("made", [False, True], ids=["leaf", "made"])
def test_a_tensor_that_a_function_closes_over_gets_its_gradient(
    rows: int, made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of blocks, and whether or not anything else wants one."""
    query, key = torch.randn(5, 3, dtype=torch.float64), torch.randn(11, 3, dtype=torch.float64)
    leaf = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    matrix = leaf.tanh() if made else leaf
    score = FeatureDot(lambda z: (z @ matrix).exp())
    (true,) = torch.autograd.grad(attend(query, key, key, score=score, backend="eager").output.square().sum(), leaf)
    monkeypatch.setattr(spans, "choose_rows_per_block", lambda per_row, queries: min(rows, queries))
    matrix = leaf.tanh() if made else leaf
    for wanted in (False, True):
        query.requires_grad_(wanted)
        for normalizer in (Softmax(), Sparsemax()):
            by = "stream" if type(normalizer) is Softmax else "rows"
            output = attend(query, key, key, score=score, normalizer=normalizer, backend=by).output  # type: ignore[arg-type]
            (found,) = torch.autograd.grad(output.square().sum(), leaf, retain_graph=True)
            expected = attend(query, key, key, score=score, normalizer=normalizer, backend="eager").output
            (true,) = torch.autograd.grad(expected.square().sum(), leaf, retain_graph=True)
            torch.testing.assert_close(found, true, rtol=0, atol=1e-10)
