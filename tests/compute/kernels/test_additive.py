"""The oracle is the definition in float64: tanh of every sum, whatever memory it takes."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from regard.compute.kernels import additive, additive_blocks, native
from regard.compute.kernels.additive import additive_scores

B, H, L, S, D = 2, 3, 5, 7, 11

Inputs = tuple[Tensor, Tensor, Tensor]


def compute_by_definition(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    hidden = torch.tanh(query[..., :, None, :] + key[..., None, :, :])
    return (hidden * weight[..., None, None, :]).sum(-1)


@pytest.fixture(params=["native", "blocks", "at once"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All ways to compute: compiled, and in plain torch by blocks or at once."""
    if request.param != "native":
        monkeypatch.setattr(additive, "_find_library", lambda *_: None)
        monkeypatch.setattr(native, "get_loaded", lambda: None)
        monkeypatch.setattr(additive_blocks, "AT_ONCE", 2**30 if request.param == "at once" else -1)
    elif native.load_library() is None:
        pytest.skip(f"no compiled kernels: {native.get_failure()}")
    return str(request.param)


def draw_inputs(*shapes: tuple[int, ...], scale: float = 1.0, dtype: torch.dtype = torch.float64) -> Inputs:
    query, key, weight = (torch.randn(shape, dtype=dtype) for shape in shapes)
    return (query * scale).requires_grad_(), (key * scale).requires_grad_(), weight.requires_grad_()


def gradients(function: Callable[..., Tensor], upstream: Tensor, tensors: Inputs) -> list[Tensor]:
    scores = function(*tensors)
    return [scores.detach(), *torch.autograd.grad(scores, tensors, upstream.to(scores.dtype))]


def measure_largest(found: Tensor, right: Tensor) -> float:
    return (found.double() - right).abs().max().item() if right.numel() else 0.0


def check(tensors: Inputs) -> None:
    """Value and gradients against the definition, in float64."""
    upstream = torch.randn_like(compute_by_definition(*tensors))
    right = gradients(compute_by_definition, upstream, tensors)
    found = gradients(additive_scores, upstream, tensors)
    for one, other in zip(found, right, strict=True):
        assert one.shape == other.shape
        assert measure_largest(one, other) <= 1e-10 * max(1.0, other.abs().max().item() if other.numel() else 0.0)


@pytest.mark.parametrize(
    "shapes",
    [
        ((L, D), (S, D), (D,)),
        ((B, L, D), (B, S, D), (D,)),
        ((B, L, D), (B, S, D), (B, D)),
        ((B, H, L, D), (B, H, S, D), (H, D)),
        ((B, H, L, D), (B, 1, S, D), (H, D)),
        ((H, L, D), (B, 1, S, D), (D,)),
        ((B, 1, L, D), (H, S, D), (B, 1, D)),
        ((2, B, H, L, D), (1, B, 1, S, D), (2, 1, 1, D)),
        ((L, D), (S, D), (B, D)),
    ],
)
def test_leading_axes_broadcast(form: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    check(draw_inputs(*shapes))


@pytest.mark.parametrize(
    ("queries", "keys", "hidden"),
    [(1, 1, 1), (1, 67, 13), (67, 1, 13), (2, 41, 71), (3, 3, 131), (37, 41, 1), (101, 97, 5), (71, 33, 67)],
)
def test_every_size_is_the_definition(form: str, queries: int, keys: int, hidden: int) -> None:
    check(draw_inputs((B, queries, hidden), (B, keys, hidden), (hidden,)))


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 30.0, 1000.0])
def test_every_range_is_the_definition(form: str, scale: float) -> None:
    check(draw_inputs((B, 37, D), (B, 41, D), (D,), scale=scale))


@pytest.mark.parametrize("sizes", [(0, S, D), (L, 0, D), (L, S, 0)])
def test_nothing_to_score(form: str, sizes: tuple[int, int, int]) -> None:
    queries, keys, hidden = sizes
    check(draw_inputs((B, queries, hidden), (B, keys, hidden), (hidden,)))
    check(draw_inputs((0, queries, hidden), (0, keys, hidden), (hidden,)))


def test_strides_do_not_matter(form: str) -> None:
    query = torch.randn(B, L, H, D, dtype=torch.float64).transpose(1, 2).requires_grad_()
    key = torch.randn(B, H, D, S, dtype=torch.float64).transpose(2, 3).requires_grad_()
    weight = torch.randn(2 * D, dtype=torch.float64)[::2].requires_grad_()
    check((query, key, weight))
    check((query.detach()[:, :, 1:].requires_grad_(), key, weight.detach().expand(B, H, D).requires_grad_()))


def test_masked_blocks_of_the_gradient_are_left_out(form: str) -> None:
    tensors = draw_inputs((B, 71, D), (B, 67, D), (D,))
    upstream = torch.randn(B, 71, 67, dtype=torch.float64).tril()
    right = gradients(compute_by_definition, upstream, tensors)
    for one, other in zip(gradients(additive_scores, upstream, tensors), right, strict=True):
        assert measure_largest(one, other) <= 1e-10 * other.abs().max().item()


def test_backward_passes_gradcheck(form: str) -> None:
    tensors = draw_inputs((B, L, 3), (S, 3), (B, 3))
    assert torch.autograd.gradcheck(additive_scores, tensors)
    assert torch.autograd.gradgradcheck(additive_scores, tensors)


def find_limits(tensors: Inputs, upstream: Tensor) -> tuple[list[Tensor], list[float]]:
    """Return what is right, and twice the error of eager in the inputs' own dtype, rounding included."""
    exact = tuple(tensor.detach().double().requires_grad_() for tensor in tensors)
    right = gradients(compute_by_definition, upstream.double(), (exact[0], exact[1], exact[2]))
    eager = gradients(compute_by_definition, upstream, tensors)
    rounding = torch.finfo(tensors[0].dtype).eps / 2
    limits = [
        2 * (measure_largest(one, other) + rounding * other.abs().max().item())
        for one, other in zip(eager, right, strict=True)
    ]
    return right, limits


@pytest.mark.parametrize("sign", ["mixed", "positive"])
@pytest.mark.parametrize("scale", [1e-3, 0.05, 0.2, 1.0, 3.0, 8.0, 60.0])
def test_float32_is_as_exact_as_eager(form: str, scale: float, sign: str) -> None:
    query, key, weight = draw_inputs((B, 67, 64), (B, 131, 64), (64,), scale=scale, dtype=torch.float32)
    if sign == "positive":
        weight = weight.detach().abs().requires_grad_()
    upstream = torch.randn(B, 67, 131)
    right, limits = find_limits((query, key, weight), upstream)
    found = gradients(additive_scores, upstream, (query, key, weight))
    for one, other, limit in zip(found, right, limits, strict=True):
        assert measure_largest(one, other) <= limit


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_rounded_once(form: str, dtype: torch.dtype) -> None:
    tensors = draw_inputs((B, 13, 32), (B, 17, 32), (32,), dtype=dtype)
    upstream = torch.randn(B, 13, 17).to(dtype)
    right, limits = find_limits(tensors, upstream)
    found = gradients(additive_scores, upstream, tensors)
    for one, other, limit in zip(found, right, limits, strict=True):
        assert one.dtype == dtype
        assert measure_largest(one, other) <= limit
    assert (
        measure_largest(found[0], right[0].to(dtype).double()) <= torch.finfo(dtype).eps * right[0].abs().max().item()
    )


def test_mixed_precision_promotes(form: str) -> None:
    query, key, _ = draw_inputs((B, L, D), (B, S, D), (D,), dtype=torch.bfloat16)
    weight = torch.randn(D, requires_grad=True)
    scores = additive_scores(query, key, weight)
    scores.sum().backward()
    assert scores.dtype == torch.float32
    assert query.grad is not None
    assert query.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saturated_units_are_exact(form: str, dtype: torch.dtype) -> None:
    """exp overflows for each of these, and the sums are ordinary numbers."""
    query = torch.tensor([-100.0, 1e4, 43.5, -3e38, 700.25, 0.0, 88.0], dtype=dtype)[:, None]
    key = torch.tensor([100.5, -1e4, -43.0, 3e38, -700.0, 0.25, -88.0], dtype=dtype)[:, None]
    weight = torch.tensor([3.0], dtype=dtype)
    tensors = query.requires_grad_(), key.requires_grad_(), weight.requires_grad_()
    right, limits = find_limits(tensors, torch.ones(7, 7, dtype=dtype))
    found = gradients(additive_scores, torch.ones(7, 7, dtype=dtype), tensors)
    for one, other, limit in zip(found, right, limits, strict=True):
        assert measure_largest(one, other) <= max(limit, 4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("queries", [1, 37])
def test_one_far_unit_does_not_disturb_the_rest(form: str, queries: int) -> None:
    query, key, weight = draw_inputs((queries, 37), (41, 37), (37,), dtype=torch.float32)
    with torch.no_grad():
        query[0, 3], key[5, 3], key[40, 7] = 500.0, -499.75, -1e20
    upstream = torch.randn(queries, 41)
    right, limits = find_limits((query, key, weight), upstream)
    for one, other, limit in zip(
        gradients(additive_scores, upstream, (query, key, weight)), right, limits, strict=True
    ):
        assert measure_largest(one, other) <= limit


@pytest.mark.parametrize("queries", [1, 5])
def test_a_saturated_unit_has_no_gradient(form: str, queries: int) -> None:
    query = torch.full((queries, 9), 60.0, requires_grad=True)
    key = torch.full((7, 9), 40.0, requires_grad=True)
    additive_scores(query, key, torch.ones(9)).sum().backward()
    assert query.grad is not None
    assert key.grad is not None
    assert query.grad.abs().max() < 1e-15
    assert key.grad.abs().max() < 1e-15


@pytest.mark.parametrize("queries", [1, 6])
@pytest.mark.parametrize("size", [1e-36, 1e37])
def test_the_size_of_the_weight_does_not_matter(form: str, queries: int, size: float) -> None:
    query, key, weight = draw_inputs((queries, 8), (20, 8), (8,), scale=9.0, dtype=torch.float32)
    one = additive_scores(query, key, weight)
    other = additive_scores(query, key, weight * size) / size
    assert torch.allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("queries", [1, 5])
def test_infinity_is_the_limit_and_nan_stays_in_its_pairs(form: str, queries: int) -> None:
    query, key = torch.zeros(queries, 19), torch.zeros(23, 19)
    key[3, 2], key[4, 2], key[5, 2] = torch.inf, -torch.inf, torch.nan
    scores = additive_scores(query, key, torch.ones(19))
    assert torch.equal(scores[:, 3], torch.ones(queries))
    assert torch.equal(scores[:, 4], -torch.ones(queries))
    assert scores[:, 5].isnan().all()
    assert not torch.cat([scores[:, :5], scores[:, 6:]], dim=1).isnan().any()


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 30.0])
def test_threads_do_not_change_scores(form: str, scale: float) -> None:
    tensors = draw_inputs((3, 67, 64), (3, 71, 64), (64,), scale=scale, dtype=torch.float32)
    upstream = torch.randn(3, 67, 71)
    one = gradients(additive_scores, upstream, tensors)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        two = gradients(additive_scores, upstream, tensors)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one[0], two[0])
    for first, second in zip(one, two, strict=True):
        assert torch.allclose(first, second, rtol=1e-4, atol=1e-4 * first.abs().max().item())


def test_it_maps_and_differentiates_under_torch_func(form: str) -> None:
    query, key, weight = draw_inputs((3, L, D), (S, D), (D, 3))

    def map_gradients(function: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        def loss(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
            return function(query, key, weight).sin().sum()

        return vmap(grad(loss, (0, 1, 2)), (0, None, 1))(query, key, weight)

    for one, other in zip(map_gradients(additive_scores), map_gradients(compute_by_definition), strict=True):
        assert one.shape == other.shape
        assert measure_largest(one, other) <= 1e-10
    outer = vmap(additive_scores, (None, 0, None))(query, torch.stack([key, 2 * key]), weight[:, 0])
    assert measure_largest(outer[1], compute_by_definition(query, 2 * key, weight[:, 0])) <= 1e-10


def test_it_traces_in_one_graph() -> None:
    """In a process of its own, because the shape checks of the tests cannot be traced."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr


def trace() -> None:
    tensors = draw_inputs((B, L, D), (S, D), (B, D))
    upstream = torch.randn(B, L, S, dtype=torch.float64)
    traced = torch.compile(additive_scores, fullgraph=True, backend="aot_eager")
    found = gradients(traced, upstream, tensors)
    for one, other in zip(found, gradients(compute_by_definition, upstream, tensors), strict=True):
        assert measure_largest(one, other) <= 1e-10


def test_the_operators_keep_their_contract() -> None:
    tensors = draw_inputs((B, L, D), (S, D), (D,))
    upstream = torch.randn(B, L, S, dtype=torch.float64)
    torch.library.opcheck(torch.ops.regard.additive_scores.default, tensors)
    torch.library.opcheck(
        torch.ops.regard.additive_gradients.default, (upstream, *(tensor.detach() for tensor in tensors))
    )


if __name__ == "__main__":
    trace()
