"""The loss of an output layer, by chunks, is torch's."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck

from regard.compute.kernels import native
from regard.errors import InputError
from regard.models.kernels import cross_entropy as module
from regard.models.kernels.cross_entropy import cross_entropy

N, V, D = 13, 37, 5


@pytest.fixture(params=["native", "torch"], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    kind: str = request.param
    if kind == "torch":
        monkeypatch.setattr(module.native, "load_library", lambda **_: None)
    elif native.load_library() is None:
        pytest.skip("no compiler here")
    return kind


def draw_example(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    vectors, weight, bias = (torch.randn(*s, dtype=dtype, requires_grad=True) for s in ((N, D), (V, D), (V,)))
    return vectors, weight, bias, torch.randint(V, (N,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1, 3 * V, 1 << 22])
def test_it_is_the_definition(monkeypatch: pytest.MonkeyPatch, smoothing: float, chunk: int) -> None:
    monkeypatch.setattr(module, "CHUNK", chunk)
    vectors, weight, bias, targets = draw_example()
    total, surprise, right = cross_entropy(vectors, weight, bias, targets, smoothing=smoothing)
    logits = F.linear(vectors, weight, bias)
    expected = F.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(total, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(surprise, F.cross_entropy(logits, targets, reduction="sum"), rtol=0, atol=1e-12)
    assert torch.equal(right, logits.argmax(-1) == targets)
    factor = 0.37
    ours = torch.autograd.grad(total * factor, (vectors, weight, bias), retain_graph=True)
    theirs = torch.autograd.grad(expected * factor, (vectors, weight, bias))
    for left, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(left, other, rtol=0, atol=1e-12)


def test_gradients() -> None:
    vectors, weight, bias, targets = draw_example()
    assert gradcheck(lambda *p: cross_entropy(*p, targets, smoothing=0.2).total, (vectors, weight, bias))
    assert gradcheck(lambda v, w: cross_entropy(v, w, None, targets).total, (vectors, weight))


def test_what_needs_no_gradient_gets_none() -> None:
    vectors, weight, bias, targets = draw_example()
    cross_entropy(vectors.detach(), weight, bias.detach(), targets).total.backward()
    assert vectors.grad is None
    assert bias.grad is None
    assert weight.grad is not None


def test_float32_is_as_exact_as_torch() -> None:
    vectors, weight, bias, targets = draw_example()
    exact = cross_entropy(vectors, weight, bias, targets, smoothing=0.1)
    short = [tensor.detach().float().requires_grad_() for tensor in (vectors, weight, bias)]
    ours = cross_entropy(*short, targets, smoothing=0.1)
    theirs = F.cross_entropy(F.linear(*short), targets, label_smoothing=0.1, reduction="sum")
    allowed = 2 * (abs(theirs.double() - exact.total) + exact.total * torch.finfo(torch.float32).eps)
    assert abs(ours.total.double() - exact.total) <= allowed


def test_extreme_scores_stay_finite() -> None:
    weight = torch.tensor([[1e4], [-1e4], [0.0]], requires_grad=True)
    total = cross_entropy(torch.ones(2, 1), weight, None, torch.tensor([0, 1])).total
    total.backward()
    torch.testing.assert_close(total, torch.tensor(2e4))
    assert weight.grad is not None
    torch.testing.assert_close(weight.grad.flatten(), torch.tensor([1.0, -1.0, 0.0]))


def test_no_tokens_no_loss() -> None:
    vectors, weight, bias, targets = draw_example()
    judged = cross_entropy(vectors[:0], weight, bias, targets[:0])
    assert judged.total == 0
    judged.total.backward()
    assert weight.grad is not None
    assert not weight.grad.any()


def test_messages() -> None:
    vectors, weight, bias, _ = draw_example()
    message = "targets: got 0 … 37, expected numbers from 0 to 36; fix: build the model for this vocabulary"
    with pytest.raises(InputError, match=message):
        cross_entropy(vectors[:2], weight, bias, torch.tensor([0, V]))
    with pytest.raises(
        InputError, match=r"smoothing: got 1\.0, expected a share from 0 to below 1; fix: use 0\.1, or 0"
    ):
        cross_entropy(vectors[:2], weight, bias, torch.tensor([0, 1]), smoothing=1.0)


def test_a_bias_of_another_kind_is_converted_and_one_of_another_size_refused() -> None:
    vectors, weight, bias, targets = (part.detach() for part in draw_example(torch.float32))
    known = cross_entropy(vectors, weight, bias, targets).total
    torch.testing.assert_close(cross_entropy(vectors, weight, bias.double(), targets).total, known)
    with pytest.raises(RuntimeError):
        module.compute_losses(vectors @ weight.T, bias[1:], targets, 0.0)
