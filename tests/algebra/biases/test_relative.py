"""Relative position in buckets, as T5 has it."""

import re
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import InputError, Relative, attend
from regard.algebra.biases.relative import assign_buckets
from regard.algebra.pairs import Pairs


def find_bucket(distance: int, count: int, farthest: int, *, causal: bool) -> int:
    """Return the bucket by the rule of Raffel et al. 2020, §2.1: half of them one by one, half by equal ratios.

    Bucket `near + k` starts where (away / near) ^ far = (farthest / near) ^ k, for `far` buckets beyond `near`:
    powers of fractions compare without rounding.
    """
    first = 0
    if causal:
        away = max(0, -distance)
    else:
        count //= 2
        first, away = (count if distance > 0 else 0), abs(distance)
    near = count // 2
    far = count - near
    if away < near:
        return first + away
    reached = [k for k in range(far) if Fraction(away, near) ** far >= Fraction(farthest, near) ** k]
    return first + near + max(reached)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("count", "farthest"), [(32, 128), (8, 16), (4, 3), (64, 1000), (16, 17)])
def test_every_distance_falls_into_its_bucket(count: int, farthest: int, causal: bool) -> None:
    if farthest <= (count // 2 if causal else count // 4):
        pytest.skip("too few far distances for a bucket")
    distances = range(-2 * farthest, 2 * farthest + 1)
    found = assign_buckets(torch.tensor(list(distances)), count, farthest, causal=causal).tolist()
    assert found == [find_bucket(d, count, farthest, causal=causal) for d in distances]


@given(st.integers(2, 20), st.integers(1, 500), st.booleans(), st.integers(-3000, 3000))
def test_buckets_of_any_size(half: int, more: int, causal: bool, distance: int) -> None:
    count = 2 * half
    farthest = (count // 2 if causal else count // 4) + more
    found = assign_buckets(torch.tensor([distance]), count, farthest, causal=causal).item()
    assert found == find_bucket(distance, count, farthest, causal=causal)
    assert 0 <= found < count


def test_it_agrees_with_the_formula_that_t5_was_trained_with() -> None:
    """mesh_tensorflow's code in float32, away from the edges where its rounding decides."""
    distance = torch.arange(-300, 301)
    away, n = distance.abs(), 16
    large = 8 + (torch.log(away.clamp_min(1) / 8) / torch.log(torch.tensor(128 / 8)) * (n - 8)).long()
    theirs = (distance > 0) * n + torch.where(away < 8, away, large.clamp_max(n - 1))
    mine = assign_buckets(distance, 32, 128, causal=False)
    edges = {a for a in away.tolist() if a >= 8 and Fraction(a, 8) ** 8 in {Fraction(16) ** k for k in range(9)}}
    differ = {int(a) for a in away[theirs != mine]}
    assert differ <= edges


def test_a_table_for_each_head_is_looked_up() -> None:
    bias = Relative(3, count=8, farthest=16)
    bias.table.data = torch.arange(24.0).view(3, 8)
    found = bias(Pairs(5, 7))
    for head in range(3):
        for row in range(5):
            for column in range(7):
                own = find_bucket(column - (row + 2), 8, 16, causal=False)
                assert found[head, row, column] == 8 * head + own


@pytest.mark.parametrize("backend", ["auto", "stream", "eager"])
def test_the_table_learns(backend: str) -> None:
    """A fused kernel gives no gradient to a mask: the plan must go another way while training."""
    bias = Relative(3).double()
    query, key, value = (torch.randn(2, 3, n, 11, dtype=torch.float64) for n in (5, 7, 7))
    attended = attend(query, key, value, bias=bias, backend=backend)  # type: ignore[arg-type]
    assert attended.plan.backend in ("stream", "eager")
    attended.output.square().sum().backward()
    assert bias.table.grad is not None
    used = torch.unique(assign_buckets(torch.arange(-6, 5), 32, 128, causal=False))
    assert (bias.table.grad[:, used] != 0).all()
    with torch.no_grad():
        assert attend(query, key, value, bias=bias).plan.backend == "sdpa"


@pytest.mark.parametrize("count", [2, 5, 0])
def test_a_count_of_buckets_that_has_no_halves_is_one_sentence(count: int) -> None:
    sentence = f"count: got {count}, expected an even number of buckets, at least 4; fix: use 32, as T5 does"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        Relative(1, count=count)


@pytest.mark.parametrize(("causal", "near"), [(False, 8), (True, 16)])
def test_no_room_for_far_distances_is_one_sentence(causal: bool, near: int) -> None:
    sentence = f"farthest: got {near}, expected more than the {near} distances with a bucket of their own; fix: use 128"
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        Relative(1, farthest=near, causal=causal)
