"""Recurrent cells over whole sequences are torch's own, with padding left out."""

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.compute.kernels import native
from regard.models.kernels import recurrent_cells
from regard.models.kernels.recurrent import gru, lstm

T, B, E, H = 7, 5, 3, 11
LENGTHS = torch.tensor([7, 1, 5, 2, 7])
REAL = torch.arange(T)[:, None] < LENGTHS


@pytest.fixture(params=["native", "torch"], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    kind: str = request.param
    if kind == "torch":
        monkeypatch.setattr(recurrent_cells, "find_cell_library", lambda *_: None)
    elif native.load_library() is None:
        pytest.skip("no compiler here")
    return kind


def run_ours(cells: nn.RNNBase, words: Tensor, start: tuple[Tensor, ...], *, reverse: bool) -> tuple[Tensor, ...]:
    end = "_reverse" if reverse else ""
    inputs = nn.functional.linear(words, getattr(cells, f"weight_ih_l0{end}"), getattr(cells, f"bias_ih_l0{end}"))
    parts = getattr(cells, f"weight_hh_l0{end}"), getattr(cells, f"bias_hh_l0{end}")
    if isinstance(cells, nn.GRU):
        return (gru(inputs, start[0], *parts, real=REAL, reverse=reverse),)
    return tuple(lstm(inputs, (start[0], start[1]), *parts, real=REAL, reverse=reverse))


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
@pytest.mark.parametrize("reverse", [False, True])
def test_it_is_the_packed_sequence_of_torch(kind: type[nn.RNNBase], reverse: bool) -> None:
    cells = kind(E, H, bidirectional=True).double()
    words = torch.randn(T, B, E).double().requires_grad_()
    starts = [torch.randn(2, B, H).double().requires_grad_() for _ in range(2 if kind is nn.LSTM else 1)]
    packed, last = cells(
        pack_padded_sequence(words, LENGTHS, enforce_sorted=False), tuple(starts) if len(starts) > 1 else starts[0]
    )
    expected = pad_packed_sequence(packed, total_length=T)[0].chunk(2, dim=-1)[reverse]
    mine = run_ours(cells, words, tuple(start[int(reverse)] for start in starts), reverse=reverse)
    states = torch.where(REAL[..., None], mine[0], 0.0)
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-12)
    ends = [mine[0][0 if reverse else -1], *mine[1:]]
    finals = last if isinstance(last, tuple) else (last,)
    for end, final in zip(ends, finals, strict=True):
        torch.testing.assert_close(end, final[int(reverse)], rtol=0, atol=1e-12)
    leaves = [words, *starts, *cells.parameters()]
    weights = torch.randn_like(states)
    first = torch.autograd.grad((states * weights).sum() + ends[-1].sin().sum(), leaves, allow_unused=True)
    second = torch.autograd.grad(
        (expected * weights).sum() + finals[-1][int(reverse)].sin().sum(), leaves, allow_unused=True
    )
    for left, right in zip(first, second, strict=True):
        left, right = (torch.zeros(()) if grad is None else grad for grad in (left, right))
        torch.testing.assert_close(left.double() + torch.zeros_like(right), right, rtol=0, atol=1e-11)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients(reverse: bool) -> None:
    def draw_numbers(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    real = REAL[:3, :3]
    parts = draw_numbers(3, 3, 6), draw_numbers(3, 2), draw_numbers(6, 2), draw_numbers(6)
    assert gradcheck(lambda *p: gru(*p, real=real, reverse=reverse), parts)
    wide = draw_numbers(3, 3, 8), draw_numbers(3, 2), draw_numbers(3, 2), draw_numbers(8, 2), draw_numbers(8)
    assert gradcheck(lambda x, h, c, w, b: tuple(lstm(x, (h, c), w, b, real=real, reverse=reverse)), wide)


def test_gates_that_are_wide_open_overflow_nothing() -> None:
    inputs = torch.full((2, 1, 6), 1e4)
    states = gru(inputs, torch.ones(1, 2), torch.ones(6, 2), torch.zeros(6))
    assert states.isfinite().all()
    torch.testing.assert_close(states[0], torch.ones(1, 2))


def test_digits_are_kept_near_zero() -> None:
    """A candidate of 1e-6 has all its digits: tanh is not made from a difference of numbers near 1."""
    inputs = torch.tensor([0.0, -200.0, 1e-6]).expand(1, 1, 3).contiguous()
    state = gru(inputs, torch.zeros(1, 1), torch.zeros(3, 1), torch.zeros(3))
    torch.testing.assert_close(state.flatten(), torch.tensor([1e-6]), rtol=1e-6, atol=0)
