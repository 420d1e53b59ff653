"""Sinusoidal, learned and rotary positions."""

import math

import pytest
import torch

from regard.algebra.masks import Causal
from regard.errors import InputError
from regard.layers import Attention, LearnedPositions, RotaryPositions, SinusoidalPositions, rotation, sinusoids

B, L, D = 2, 7, 10


def test_sinusoids_are_the_formula() -> None:
    table = sinusoids(L, D)
    for i in range(L):
        for j in range(D // 2):
            angle = i / 10000 ** (2 * j / D)
            assert table[i, 2 * j].item() == pytest.approx(math.sin(angle), abs=1e-15)
            assert table[i, 2 * j + 1].item() == pytest.approx(math.cos(angle), abs=1e-15)


@pytest.mark.parametrize("delta", [0, 1, -3, 17, 2.5])
def test_a_shift_is_a_fixed_rotation(delta: float) -> None:
    """p(i + δ) = R(δ) p(i), for every i alike, and R is a rotation."""
    matrix = rotation(delta, D)
    for start in (0, 5, 1000):
        position = torch.arange(start, start + L, dtype=torch.float64) + delta
        angle = position[:, None] * 10000.0 ** -(torch.arange(0, D, 2, dtype=torch.float64) / D)
        shifted = torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)
        torch.testing.assert_close(sinusoids(L, D, start=start) @ matrix.T, shifted)
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(D).double())
    torch.testing.assert_close(torch.linalg.det(matrix), torch.tensor(1.0).double())


def test_rotations_compose() -> None:
    torch.testing.assert_close(rotation(2, D) @ rotation(3, D), rotation(5, D))
    torch.testing.assert_close(rotation(-4, D), rotation(4, D).T)


@pytest.mark.parametrize("positions", [SinusoidalPositions(D), LearnedPositions(L, D)])
def test_stepping_is_the_whole(positions: torch.nn.Module) -> None:
    x = torch.randn(B, L, D)
    steps = [positions(x[:, t : t + 1], start=t) for t in range(L)]
    torch.testing.assert_close(torch.cat(steps, 1), positions(x))
    assert positions(x).shape == x.shape


def test_far_positions_keep_their_digits() -> None:
    added = SinusoidalPositions(D)(torch.zeros(1, 1, D), start=100_003)[0, 0, 0].item()
    assert added == pytest.approx(math.sin(100_003), abs=1e-6)


def test_rotary_products_depend_on_distance_only() -> None:
    rotary = RotaryPositions(D)
    query, key = torch.randn(2, 1, D).double()
    products = [(rotary(query, start=i) * rotary(key, start=i - 3)).sum() for i in (3, 8, 101, 1000)]
    torch.testing.assert_close(torch.stack(products), products[0].expand(4))
    near = (rotary(query, start=3) * rotary(key, start=1)).sum()
    assert (near - products[0]).abs() > 1e-3
    torch.testing.assert_close(rotary(query, start=7).norm(), query.norm())


def test_rotary_is_the_matrix_of_rotation() -> None:
    x = torch.randn(B, L, D).double()
    expected = torch.stack([x[:, i] @ rotation(i, D) for i in range(L)], 1)
    torch.testing.assert_close(RotaryPositions(D)(x), expected)


def test_a_layer_with_rotary_sees_distance_only() -> None:
    layer = Attention(2 * D, heads=2, rotary=RotaryPositions(D)).double()
    x = torch.randn(B, L, 2 * D).double()
    shifted = layer.remember(x, start=100)
    query = layer._rotate(layer.projections.project_queries(x), 100)
    moved = layer.attend_heads(query, shifted, mask=Causal()).output
    torch.testing.assert_close(moved, layer(x, layer.remember(x), mask=Causal()))


def test_messages() -> None:
    with pytest.raises(InputError) as caught:
        SinusoidalPositions(7)
    expected = "dim: got 7, expected an even number, because sine and cosine come in pairs; fix: use 8"
    assert str(caught.value) == expected
    with pytest.raises(InputError) as caught:
        LearnedPositions(5, 3)(torch.ones(1, 4, 3), start=2)
    expected = "sequence: got 6 positions, expected at most 5; fix: build LearnedPositions(6, …), or cut the sequence"
    assert str(caught.value) == expected
    with pytest.raises(InputError) as caught:
        RotaryPositions(4)(torch.ones(1, 6))
    assert str(caught.value) == "rotary.dim: got 4, expected the width of one head, 6; fix: build RotaryPositions(6)"
