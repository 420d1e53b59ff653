"""Points may lie anywhere and be of any size: the contract of precision holds, or the plan says why not."""

import itertools

import pytest
import torch

from regard import ALiBi, Causal, Dot, Entmax15, Gaussian, Laplacian, Lengths, Softmax, SoftmaxPlusOne, Window, attend
from regard.algebra.shapes import Tensor
from regard.compute import verification
from regard.errors import PlanError

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
SCORES = {
    "gaussian": Gaussian(),
    "narrow": Gaussian(bandwidth=1 / 30),
    "wide": Gaussian(bandwidth=100.0),
    "sum": Dot() * 1e-3 + 0.5 * Gaussian(bandwidth=0.5),
    "laplacian": Laplacian(),
}
PLACES = {
    "around 0": lambda x: x,
    "around 30": lambda x: x + 30,
    "around 0 and 1e3": lambda x: x + 1e3 * (torch.arange(x.shape[-2])[:, None] % 3 == 0),
    "around 1e4": lambda x: x + 1e4,
    "around 0 and 1e4": lambda x: x + 1e4 * (torch.arange(x.shape[-2])[:, None] % 3 == 0),
    "around 0 and 1e8": lambda x: x + 1e8 * (torch.arange(x.shape[-2])[:, None] % 3 == 0),
    "of all sizes": lambda x: x * 10.0 ** (torch.arange(x.shape[-2])[:, None] % 7 - 3),
    "stretched": lambda x: x * 100,
}
EXTRA = {torch.float32: 20}  # units in the last place that torch's fused kernel takes from exponentials


def draw_points(place: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    sizes = (23, 3), (37, 3), (37, 2)
    query, key, value = (torch.randn(2, *size, generator=generator, dtype=torch.float64) for size in sizes)
    return PLACES[place](query).to(dtype), PLACES[place](key).to(dtype), value.to(dtype)


def measure_error(found: Tensor, true: Tensor) -> float:
    return float((found.double() - true).abs().max())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", SCORES)
def test_no_place_costs_digits(name: str, place: str, dtype: torch.dtype) -> None:
    query, key, value = draw_points(place, dtype)
    if not bool(torch.isfinite(torch.stack([query.abs().amax(), key.abs().amax()])).all()):
        pytest.skip("not a number of this dtype")
    masks = (None, Causal(), Window(5, 1), Lengths(torch.tensor([30, 7])))
    normalizers = (Softmax(), SoftmaxPlusOne(), Entmax15())
    for mask, normalizer in itertools.product(masks, normalizers):
        options = {"score": SCORES[name], "normalizer": normalizer} | ({} if mask is None else {"mask": mask})
        eager = attend(query, key, value, backend="eager", **options).output
        true = attend(query.double(), key.double(), value.double(), backend="eager", **options).output
        rounding = torch.finfo(dtype).eps * float(true.abs().max())
        own = measure_error(eager, true)
        allowed = 2 * (rounding if own != own else own + rounding) + EXTRA.get(dtype, 0) * rounding
        allowed += torch.finfo(dtype).tiny  # smaller numbers have fewer digits, and some kernels have none
        if dtype == torch.float64:  # there the definition has nothing wider to be compared with
            allowed = verification.VALUE * max(1.0, float(true.abs().max()))
        for backend in ("auto", "sdpa", "local", "stream"):
            try:
                found = attend(query, key, value, backend=backend, **options)  # type: ignore[arg-type]
            except PlanError:
                assert backend in ("sdpa", "local")
                continue
            assert measure_error(found.output, true) <= allowed, (mask, normalizer, backend, found.plan.explain())


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("normalizer", [Softmax(), SoftmaxPlusOne()], ids=repr)
@pytest.mark.parametrize(("near", "far"), [(1e-3, 1e2), (1e-3, 1e3), (1e-3, 1e4), (1.0, 1e3)])
def test_a_learned_bandwidth_keeps_the_digits_of_its_gradient(
    near: float, far: float, normalizer: Softmax | SoftmaxPlusOne, dtype: torch.dtype
) -> None:
    """Distances that count are next to nothing beside the terms of the squares, which a fused kernel adds up."""
    generator = torch.Generator().manual_seed(5)
    sizes = (8, 3), (8, 3), (8, 2)
    places = [near * torch.randn(*size, generator=generator, dtype=torch.float64) for size in sizes]
    places = [place + far * (torch.arange(8)[:, None] % 3 == 0) for place in places[:2]] + [places[2] + far]

    def differentiate(wide: torch.dtype, backend: str) -> Tensor:
        bandwidth = torch.ones((), dtype=wide, requires_grad=True)
        tensors = [place.to(dtype).to(wide) for place in places]
        score = Gaussian(bandwidth=bandwidth)
        output = attend(*tensors, score=score, normalizer=normalizer, backend=backend).output  # type: ignore[arg-type]
        return torch.autograd.grad(output.sum(), bandwidth)[0]

    true = differentiate(torch.float64, "eager")
    own, found = (measure_error(differentiate(dtype, backend), true) for backend in ("eager", "auto"))
    rounding = torch.finfo(dtype).eps * max(1.0, float(true.abs()))
    assert found <= 2 * (own + rounding) + 2 * EXTRA.get(dtype, 0) * rounding


def test_the_plan_says_why_it_is_careful() -> None:
    query, key, value = draw_points("around 0 and 1e4", torch.float32)
    plan = attend(query, key, value, score=Gaussian()).plan
    assert plan.backend == "sdpa"
    assert plan.precision == torch.float64
    assert "precision: float64, because float32 would lose digits" in plan.explain()
    query, key, value = draw_points("around 0 and 1e8", torch.float32)
    plan = attend(query, key, value, score=Gaussian(bandwidth=1 / 30)).plan
    assert plan.backend == "stream"
    assert "only pairs taken one by one keep their digits" in plan.explain()
    with pytest.raises(PlanError, match="pairs taken one by one"):
        attend(query, key, value, score=Gaussian(bandwidth=1 / 30), backend="sdpa")
    assert attend(*draw_points("around 0", torch.float32), score=Gaussian()).plan.precision is None


def test_float16_keys_of_hundreds_are_read() -> None:
    """The squares of these overflow float16; their distances to the query do not matter there."""
    for keys in ([0.0, 500.0, 1000.0], [0.0, 101.0, 251.0, -30000.0]):
        key = torch.tensor(keys, dtype=torch.float16)[:, None]
        value = torch.arange(len(keys), dtype=torch.float16)[:, None]
        found = attend(key, key, value, score=Gaussian()).output
        assert torch.equal(found, value)


@pytest.mark.parametrize("length", [40, 900])
def test_alibi_is_as_exact_far_from_the_start_as_near_it(length: int) -> None:
    """As a number for each key it would be as large as the length, and its error with it."""
    generator = torch.Generator().manual_seed(5)
    query, key, value = (torch.randn(1, 8, length, 4, generator=generator) for _ in range(3))
    bias = ALiBi(8)
    found = attend(query, key, value, bias=bias, mask=Causal()).output
    eager = attend(query, key, value, bias=bias, mask=Causal(), backend="eager").output
    true = attend(query.double(), key.double(), value.double(), bias=bias, mask=Causal(), backend="eager").output
    rounding = torch.finfo(torch.float32).eps * float(true.abs().max())
    assert measure_error(found, true) <= 2 * (measure_error(eager, true) + rounding) + EXTRA[torch.float32] * rounding


def test_gradients_keep_their_digits_too() -> None:
    for place in ("around 1e4", "around 0 and 1e4", "stretched"):
        grads = []
        for dtype, backend in ((torch.float32, "auto"), (torch.float64, "eager")):
            tensors = [tensor.to(dtype).requires_grad_() for tensor in draw_points(place, torch.float32)]
            output = attend(*tensors, score=Gaussian(), mask=Causal(), backend=backend).output  # type: ignore[arg-type]
            grads.append(torch.autograd.grad(output.square().sum(), tensors))
        for found, true in zip(*grads, strict=True):
            torch.testing.assert_close(found.double(), true, rtol=1e-4, atol=1e-4)
