"""Whatever takes a number takes one for each head, in every backend; a wrong count is refused in our own words."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from regard import (
    Additive,
    Capped,
    Causal,
    Cosine,
    Dot,
    Entmax,
    FeatureDot,
    Gaussian,
    Gumbel,
    InputError,
    KindError,
    Laplacian,
    Lengths,
    RowTotal,
    ScaledDot,
    Score,
    Sigmoid,
    Softmax,
    Window,
    attend,
)
from regard.algebra.shapes import Tensor
from regard.compute.backends import BACKENDS
from regard.errors import PlanError
from regard.layers import Attention, Mechanism

B, H, L, S, D = 3, 4, 5, 7, 11
NUMBERS = [0.5, 1.0, 2.0, 3.0]

# What takes a number for each head, and the name of that number in messages.
TAKERS: dict[str, tuple[Callable[[Any], dict[str, Any]], str]] = {
    "dot": (lambda n: {"score": Dot() * n}, "score.factor"),
    "scaled dot, from the left": (lambda n: {"score": 2.0 * (ScaledDot() * n)}, "score.factor"),
    "sum": (lambda n: {"score": Dot() * n + Gaussian(0.5)}, "score.factor"),
    "laplacian": (lambda n: {"score": Laplacian() * n}, "score.factor"),
    "features": (lambda n: {"score": FeatureDot() * n, "normalizer": RowTotal()}, "score.factor"),
    "gaussian's bandwidth": (lambda n: {"score": Gaussian(n)}, "score.bandwidth"),
    "laplacian's bandwidth": (lambda n: {"score": Laplacian(n)}, "score.bandwidth"),
    "cosine's temperature": (lambda n: {"score": Cosine(n)}, "score.temperature"),
    "cap": (lambda n: {"score": Capped(Dot(), n)}, "score.cap"),
    "temperature": (lambda n: {"normalizer": Softmax(n)}, "normalizer.temperature"),
    "alpha": (lambda n: {"normalizer": Entmax(1.0 + n)}, "normalizer.alpha"),
    "shift": (lambda n: {"normalizer": Sigmoid(n)}, "normalizer.shift"),
    "gumbel's temperature": (lambda n: {"aggregate": Gumbel(n)}, "aggregate.temperature"),
}
MASKS = {"full": {}, "causal": {"mask": Causal()}, "window": {"mask": Window(2, 1)}}


def tensors(generator: int = 0) -> list[Tensor]:
    noise = torch.Generator().manual_seed(generator)
    sizes = [(B, H, L, D), (B, H, S, D), (B, H, S, 2)]
    return [torch.randn(size, dtype=torch.float64, generator=noise) / 2 for size in sizes]


def make_head_tensor(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", TAKERS)
def test_a_number_for_each_head_is_each_head_with_its_number(name: str, mask: str) -> None:
    make, _ = TAKERS[name]
    query, key, value = tensors()
    ran = 0
    for backend in [
        "auto",
        *(name for name in BACKENDS if name != "flex" or mask == "full"),
    ]:  # it traces masks for long
        torch.manual_seed(0)
        try:
            with torch.no_grad():
                whole = attend(query, key, value, backend=backend, **make(make_head_tensor(NUMBERS)), **MASKS[mask])
        except PlanError:
            continue
        assert torch.allclose(whole.output, whole.weights.dense() @ value, rtol=1e-9, atol=1e-9), backend
        ran += 1
        if name.startswith("gumbel"):  # whose noise knows the address of a head
            continue
        for head, number in enumerate(NUMBERS):
            one = attend(query[:, head], key[:, head], value[:, head], backend="eager", **make(number), **MASKS[mask])
            assert torch.allclose(whole.output[:, head], one.output, rtol=1e-9, atol=1e-9), (backend, head)
    assert ran >= 3


def test_a_temperature_for_each_head_is_in_the_gumbel_sample() -> None:
    query, key, value = tensors()
    outputs = []
    for number in (make_head_tensor(NUMBERS), *NUMBERS):
        torch.manual_seed(0)
        outputs.append(attend(query, key, value, aggregate=Gumbel(number)).output)
    for head in range(H):
        assert torch.allclose(outputs[0][:, head], outputs[1 + head][:, head])


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("backend", ["auto", "eager"])
def test_a_wrong_number_of_heads_is_refused(name: str, backend: Any) -> None:
    make, said = TAKERS[name]
    query, key, value = tensors()
    got = "got shape (3,), expected one number for each of 4 heads; fix: give a tensor of shape (4,), or one number"
    sentence = f"{said}: {got}"
    with pytest.raises(InputError, match=re.escape(sentence)):
        attend(query, key, value, backend=backend, **make(make_head_tensor(NUMBERS[:3])))
    with pytest.raises(InputError, match=re.escape(f"{said}: got shape (4, 1, 1), expected one number for each of 4")):
        attend(query, key, value, backend=backend, **make(make_head_tensor(NUMBERS)[:, None, None]))
    with pytest.raises(InputError, match=re.escape("expected one number, because there are no heads")):
        attend(query[0, 0], key[0, 0], value[0, 0], backend=backend, **make(make_head_tensor(NUMBERS)))


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("score", [Additive.projected(2, heads=3), Additive(2, 2, 7, heads=3) + Dot()], ids=repr)
def test_vectors_for_a_wrong_number_of_heads_are_refused(score: Score) -> None:
    query, key, value = (tensor[..., :2].float() for tensor in tensors())
    sentence = "score.weight: got shape (3,), expected one number for each of 4 heads"
    with pytest.raises(InputError, match=re.escape(sentence)):
        attend(query, key, value, score=score)
    with pytest.raises(InputError, match="because there are no heads"):
        attend(query[0, 0], key[0, 0], value[0, 0], score=score)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize(
    "bad", [torch.tensor([1, 2]), torch.tensor([True]), torch.tensor([1j]), [1.0], "2", None], ids=str
)
def test_what_is_no_number_is_refused(name: str, bad: Any) -> None:
    make, _ = TAKERS[name]
    if name == "alpha":
        make = lambda n: {"normalizer": Entmax(n)}  # noqa: E731
    refusals = (
        (KindError, TypeError) if not isinstance(bad, Tensor) else KindError
    )  # Python refuses Dot() * [1.0] itself
    with pytest.raises(refusals):
        make(bad)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("name", ["dot", "gaussian's bandwidth", "temperature", "alpha", "cap"])
def test_grouped_heads_have_their_own_numbers(name: str, groups: int) -> None:
    make, _ = TAKERS[name]
    torch.manual_seed(1)
    layer = Attention(8, heads=H, groups=groups).double()
    x = torch.randn(B, L, 8, dtype=torch.float64)
    memory = layer.remember(x, mask=Lengths(torch.tensor([5, 3, 1])))
    whole = layer.attend(x, memory, mechanism=Mechanism(**make(make_head_tensor(NUMBERS)))).weights.dense()
    for head, number in enumerate(NUMBERS):
        one = layer.attend(x, memory, mechanism=Mechanism(**make(number))).weights.dense()
        assert torch.allclose(whole[:, head], one[:, head])
