"""A hard aggregate without a gradient takes values by the order of the scores, as its definition does by weights."""

from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad

from regard import (
    Argmax,
    Bilinear,
    Causal,
    Documents,
    Full,
    Gaussian,
    Lengths,
    Mask,
    ScaledDot,
    Softmax,
    SoftmaxPlusOne,
    Sparsemax,
    Window,
    attend,
)
from regard.algebra.masks import Mask as MaskPart
from regard.compute.backends import stream
from regard.compute.kernels import native
from regard.compute.lowering import hard, spans

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13
MASKS = {
    "full": Full(),
    "causal": Causal(),
    "lengths": Lengths(torch.tensor([4, 0])).add_head_axis(),
    "nothing": Mask.keep(torch.zeros(L, S, dtype=torch.bool)),
}


def draw(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (B, H, L, D), (B, 1, S, D), (B, H, S, E)
    query, key, value = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return query.to(dtype), key.to(dtype), value.to(dtype)


@pytest.fixture
def picks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was picked by order."""
    made: list[object] = []
    pick = stream.pick_largest
    monkeypatch.setattr(stream, "pick_largest", lambda *given: made.append(pick(*given)) or made[-1])
    return made


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MASKS)
def test_the_value_is_that_of_the_definition(dtype: torch.dtype, name: str, picks: list[object]) -> None:
    query, key, value = draw(dtype)
    mask: MaskPart = MASKS[name]
    with torch.inference_mode():
        options = {"mask": mask, "normalizer": Softmax(0.5), "aggregate": Argmax(), "score": ScaledDot()}
        found = attend(query, key, value, **options)
        wide = attend(query.double(), key.double(), value.double(), backend="eager", **options)
    assert len(picks) == 1
    torch.testing.assert_close(found.output, wide.output.to(dtype), rtol=0, atol=0)
    torch.testing.assert_close(found.weights.dense().double(), wide.weights.dense(), rtol=0, atol=0)


def test_other_normalizers_and_gradients_take_the_weights(picks: list[object]) -> None:
    query, key, value = draw(torch.float64)
    with torch.inference_mode():
        attend(query, key, value, aggregate=Argmax(), normalizer=Sparsemax())
        attend(query, key, value, aggregate=Argmax(), dropout=0.5)
    attend(query.requires_grad_(), key, value, aggregate=Argmax()).output.sum().backward()
    assert not picks
    assert query.grad is not None
    assert query.grad.abs().max() > 0


def test_a_row_whose_weights_are_nothing_has_no_largest() -> None:
    """Softmax with a one in its total gives zeros where all scores are far below 0: there is nothing to take."""
    query, key, value = torch.ones(1, 1), torch.tensor([[-3000.0], [-2000.0]]), torch.tensor([[5.0], [7.0]])
    with torch.inference_mode():
        found = attend(query, key, value, score=ScaledDot(), normalizer=SoftmaxPlusOne(), aggregate=Argmax())
    assert found.weights.dense().tolist() == [[0.0, 0.0]]
    assert found.output.tolist() == [[0.0]]


def test_tensors_without_numbers_are_not_read(picks: list[object]) -> None:
    with FakeTensorMode(), torch.no_grad():
        assert attend(*(torch.ones(B, S, D) for _ in range(3)), aggregate=Argmax()).output.shape == (B, S, D)
    assert not picks


def test_derivatives_that_go_forward_are_those_of_the_weights(picks: list[object]) -> None:
    tensors = draw(torch.float64)
    with torch.no_grad(), forward_ad.dual_level():
        query, key, value = (forward_ad.make_dual(tensor, torch.ones_like(tensor)) for tensor in tensors)
        found = forward_ad.unpack_dual(attend(query, key, value, aggregate=Argmax()).output).tangent
        wanted = forward_ad.unpack_dual(attend(query, key, value, aggregate=Argmax(), backend="eager").output).tangent
    assert not picks
    torch.testing.assert_close(found, wanted)


def test_an_aggregate_of_ones_own_is_not_taken_for_it(picks: list[object]) -> None:
    class Last(Argmax):
        def forward(self, weights, pairs, seed):  # type: ignore[no-untyped-def]
            return super().forward(weights.flip(-1), pairs, seed)

    query, key, value = draw(torch.float64)
    with torch.inference_mode():
        attend(query, key, value, aggregate=Last())
    assert not picks


def test_infinite_scores_are_left_to_the_definition(picks: list[object]) -> None:
    query, key, value = draw(torch.float64)
    score = Gaussian() + torch.tensor([0.0, float("inf"), 0.0])
    with torch.inference_mode():
        found = attend(query, key, value, score=score, aggregate=Argmax())
        wanted = attend(query, key, value, score=score, aggregate=Argmax(), backend="eager")
    assert picks == [None]
    torch.testing.assert_close(found.output, wanted.output, rtol=0, atol=0, equal_nan=True)


def test_many_blocks_are_one(monkeypatch: pytest.MonkeyPatch, picks: list[object]) -> None:
    monkeypatch.setattr(spans, "choose_rows_per_block", lambda per_row, queries: min(2, queries))
    query, key, value = draw(torch.float64)
    with torch.inference_mode():
        found = attend(query, key, value, mask=Causal(), aggregate=Argmax())
        wanted = attend(query, key, value, mask=Causal(), aggregate=Argmax(), backend="eager")
    assert len(picks) > 1
    torch.testing.assert_close(found.output, wanted.output, rtol=0, atol=0)


needs_kernel = pytest.mark.skipif(native.load_library() is None, reason="no compiler here")
MANY, KEYS = 37, 41  # queries that fill a vector and part of a second one
LARGE_MASKS = {
    "full": Full(),
    "causal": Causal(),
    "window": Window(3, 2),
    "lengths": Lengths(torch.tensor([29, 0])).add_head_axis(),
    "documents": Documents(torch.arange(KEYS) // 7),
    "table": Mask.keep(torch.rand(B, 1, MANY, KEYS, generator=torch.Generator().manual_seed(5)) < 0.1),
    "nothing": Mask.keep(torch.zeros(MANY, KEYS, dtype=torch.bool)),
}


def draw_many(dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = (B, H, MANY, D), (B, 1, KEYS, D), (B, H, KEYS, E)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the loop over products found."""
    made: list[object] = []
    find = hard.find_largest
    monkeypatch.setattr(
        hard, "find_largest", lambda *given, **options: made.append(find(*given, **options)) or made[-1]
    )
    return made


@needs_kernel
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", LARGE_MASKS)
def test_the_loop_finds_the_value_of_the_definition(dtype: torch.dtype, name: str, loops: list[object]) -> None:
    tensors, options = draw_many(dtype), {"mask": LARGE_MASKS[name], "aggregate": Argmax()}
    with torch.inference_mode():
        found = attend(*tensors, **options)
        wanted = attend(*(tensor.double() for tensor in tensors), backend="eager", **options)
    assert loops
    assert None not in loops
    torch.testing.assert_close(found.output, wanted.output.to(dtype), rtol=0, atol=0)


@needs_kernel
@pytest.mark.parametrize("name", LARGE_MASKS)
def test_the_gradient_is_that_of_the_definition(name: str, loops: list[object]) -> None:
    tensors = draw_many()
    normalizer = Softmax(torch.tensor(0.7, dtype=torch.float64, requires_grad=True))
    score = Bilinear(D, D).double()
    learned = [*tensors, normalizer.temperature, *score.parameters()]
    upstream = torch.randn(B, H, MANY, E, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def derive(backend: str) -> tuple[torch.Tensor, ...]:
        options = {"mask": LARGE_MASKS[name], "aggregate": Argmax(), "normalizer": normalizer, "score": score}
        output = attend(*tensors, **options, backend=backend).output
        return output, *torch.autograd.grad(output, learned, upstream)

    found, wanted = derive("rows"), derive("eager")
    assert len(loops) == 1
    for mine, defined in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, defined, rtol=1e-9, atol=1e-10)


@needs_kernel
@pytest.mark.parametrize("mask", [Full(), Causal(), LARGE_MASKS["table"]], ids=["full", "causal", "table"])
def test_second_derivatives_are_those_of_the_definition(mask: MaskPart, loops: list[object]) -> None:
    tensors = draw_many()

    def derive(backend: str) -> tuple[torch.Tensor, ...]:
        output = attend(*tensors, mask=mask, aggregate=Argmax(), backend=backend).output
        first = torch.autograd.grad(output.square().sum(), tensors, create_graph=True)
        return torch.autograd.grad(sum(part.square().sum() for part in first), tensors)

    for mine, defined in zip(derive("rows"), derive("eager"), strict=True):
        torch.testing.assert_close(mine, defined, rtol=1e-8, atol=1e-8)
    assert loops


@needs_kernel
def test_the_first_of_equal_products_is_taken(loops: list[object]) -> None:
    query, key = torch.ones(MANY, D), torch.ones(KEYS, D)
    key[5], key[17], key[40] = 2.0, 2.0, 2.0
    with torch.inference_mode():
        found = attend(query, key, torch.arange(KEYS).float()[:, None], aggregate=Argmax())
    assert loops
    assert (found.output == 5).all()


@needs_kernel
@pytest.mark.parametrize("broken", [float("nan"), float("inf"), 3e38], ids=str)
@pytest.mark.parametrize("prepare", [torch.clone, lambda tensor: tensor.mT.contiguous().mT], ids=["rows", "columns"])
def test_hidden_keys_are_not_chosen(broken: float, prepare: Callable[[torch.Tensor], torch.Tensor]) -> None:
    query, key, value = (prepare(tensor.detach()) for tensor in draw_many(torch.float32))
    mask = Lengths(torch.tensor([[30], [20]]))
    with torch.inference_mode():
        clean = attend(query, key, value, mask=mask, aggregate=Argmax()).output
        key[..., 30:, :], value[..., 30:, :] = broken, broken
        assert torch.equal(attend(query, key, value, mask=mask, aggregate=Argmax()).output, clean)
