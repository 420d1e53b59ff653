"""Luong's local attention, local-m and local-p."""

import math

import pytest
import torch

from regard.algebra.masks import Lengths
from regard.algebra.scores import Dot
from regard.errors import InputError
from regard.layers import Attention, Center, LocalAttention, Mechanism, Projections, monotonic_window

B, H, L, S, D, R = 2, 3, 5, 13, 11, 3


def test_center_is_the_formula() -> None:
    """Luong et al. 2015, eq. 9."""
    center = Center(D, hidden=7).double()
    query = torch.randn(B, L, D).double()
    found = center(query, torch.tensor([S, 4]))
    for b, length in enumerate((S, 4)):
        for t in range(L):
            inner = center.position.weight[0] @ torch.tanh(center.hidden.weight @ query[b, t])
            torch.testing.assert_close(found[b, t], length * torch.sigmoid(inner))


def test_local_p_is_the_formula() -> None:
    """Luong et al. 2015, eq. 10: softmax over the window, times the Gaussian, not renormalized."""
    attention = Attention(Projections(), mechanism=Mechanism(Dot()))
    local = LocalAttention(attention, radius=R, size=D).double()
    query, source, lengths = torch.randn(B, L, D).double(), torch.randn(B, S, D).double(), torch.tensor([S, 8])
    attended = local.attend(query, attention.remember(source, mask=Lengths(lengths)))
    weights, center = attended.weights.dense()[:, 0], local.center(query, lengths)
    for b in range(B):
        for t in range(L):
            p = center[b, t].item()
            seen = [s for s in range(int(lengths[b])) if abs(s - p) <= R]
            scores = torch.stack([query[b, t] @ source[b, s] for s in seen]).softmax(0)
            expected = torch.zeros(S).double()
            for s, weight in zip(seen, scores, strict=True):
                expected[s] = weight * math.exp(-((s - p) ** 2) / (2 * (R / 2) ** 2))
            torch.testing.assert_close(weights[b, t], expected)
            torch.testing.assert_close(attended.output[b, t], expected @ source[b])


def test_the_center_is_trained_in_every_head() -> None:
    local = LocalAttention(Attention(H * D, heads=H), radius=R, size=H * D)
    x = torch.randn(B, S, H * D)
    out = local(x, local.attention.remember(x, mask=Lengths(torch.tensor([S, 0]))))
    out.square().sum().backward()
    assert out.isfinite().all()
    for name, parameter in local.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_local_m_walks_along_the_source() -> None:
    attention = Attention(Projections(), mechanism=Mechanism(Dot()))
    query, source = torch.randn(B, L, D).double(), torch.randn(B, S, D).double()
    memory = attention.remember(source)
    whole = attention(query, memory, mask=monotonic_window(L, radius=R))
    for t in range(L):
        seen = source[:, max(0, t - R) : t + R + 1]
        expected = (query[:, t : t + 1] @ seen.transpose(1, 2)).softmax(-1) @ seen
        torch.testing.assert_close(whole[:, t : t + 1], expected)
        step = attention(query[:, t : t + 1], memory, mask=monotonic_window(1, radius=R, start=t))
        torch.testing.assert_close(step, expected)


def test_a_window_beyond_the_source_gives_zeros() -> None:
    attention = Attention(Projections(), mechanism=Mechanism(Dot()))
    memory = attention.remember(torch.randn(B, S, D))
    late = attention(torch.randn(B, 1, D), memory, mask=monotonic_window(1, radius=R, start=S + R))
    assert torch.equal(late, torch.zeros(B, 1, D))


def test_messages() -> None:
    with pytest.raises(InputError) as caught:
        LocalAttention(Attention(D), radius=0, size=D)
    assert str(caught.value) == "radius: got 0, expected at least 1; fix: use 10, as the paper does"
