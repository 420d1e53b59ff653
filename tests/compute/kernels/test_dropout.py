"""Dropout by address: the same bits natively and in torch, forward and backward."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from regard.compute.kernels import dropout as module
from regard.compute.kernels import native
from regard.compute.kernels.dropout import add_dropout, dropout, relu_dropout
from regard.errors import InputError

ROWS, WIDTH, RATE = 41, 211, 0.3  # more than two rows of noise


@pytest.fixture(params=["native", "torch"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to compute it."""
    kind: str = request.param
    if kind == "torch":
        monkeypatch.setattr(module, "find_library", lambda *_, **__: None)
    elif native.load_library() is None:
        pytest.skip("no compiler here")
    return kind


def find_factors(numbers: Tensor) -> Tensor:
    """Return the factors that dropout multiplies by, found with ones."""
    return dropout(torch.ones_like(numbers), RATE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_share_is_dropped_and_the_rest_scaled_up(kernel: str, dtype: torch.dtype) -> None:
    kept = dropout(torch.ones(101, 997, dtype=dtype), RATE)
    scale = torch.tensor(1 / (1 - RATE), dtype=dtype)
    assert set(kept.unique().tolist()) == {0.0, scale.item()}
    share, deviation = (kept == 0).double().mean().item(), (RATE * (1 - RATE) / kept.numel()) ** 0.5
    assert abs(share - RATE) < 4 * deviation


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_native_and_torch_drop_the_same(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype) -> None:
    if native.load_library() is None:
        pytest.skip("no compiler here")
    numbers, base = torch.randn(2, ROWS, WIDTH, dtype=dtype).unbind()

    def drop_all_three() -> list[Tensor]:
        torch.manual_seed(5)
        return [dropout(numbers, RATE), add_dropout(base, numbers, RATE), relu_dropout(numbers, RATE)]

    ours = drop_all_three()
    monkeypatch.setattr(module, "find_library", lambda *_, **__: None)
    for mine, theirs in zip(ours, drop_all_three(), strict=True):
        torch.testing.assert_close(mine, theirs)
        assert torch.equal(mine == 0, theirs == 0)


def test_what_stands_around_it_is_its_definition(kernel: str) -> None:
    numbers, base = torch.randn(2, ROWS, WIDTH).unbind()
    torch.manual_seed(5)
    keep = find_factors(numbers)
    torch.manual_seed(5)
    torch.testing.assert_close(add_dropout(base, numbers, RATE), base + numbers * keep)
    torch.manual_seed(5)
    torch.testing.assert_close(relu_dropout(numbers, RATE), numbers.relu() * keep)


def test_gradients(kernel: str) -> None:
    def call_seeded(function: object, *tensors: Tensor) -> Tensor:
        torch.manual_seed(5)
        return function(*tensors, RATE)  # type: ignore[operator]

    base, numbers = torch.randn(2, 5, 7, dtype=torch.float64, requires_grad=True).unbind()
    assert gradcheck(lambda n: call_seeded(dropout, n), (numbers,))
    assert gradcheck(lambda b, n: call_seeded(add_dropout, b, n), (base, numbers))
    assert gradcheck(lambda n: call_seeded(relu_dropout, n), (numbers,))


def test_torch_governs_the_seed(kernel: str) -> None:
    numbers = torch.randn(ROWS, WIDTH)
    first = dropout(numbers, RATE)
    assert not torch.equal(first, dropout(numbers, RATE))
    torch.manual_seed(0)
    torch.randn(ROWS, WIDTH)
    assert torch.equal(first, dropout(numbers, RATE))


def test_what_is_not_a_number_stays_seen(kernel: str) -> None:
    torch.manual_seed(5)
    kept = relu_dropout(torch.full((ROWS,), float("nan")), RATE)
    assert kept.isnan().any()


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(
        InputError, match=f"dropout: got {rate}, expected a rate from 0 to below 1; fix: use 0 for none"
    ):
        dropout(torch.ones(3), rate)
