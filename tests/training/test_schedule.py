"""Rates: closed forms at the points where they are known."""

import math

import pytest

from regard.errors import InputError
from regard.training import Schedule
from regard.training.schedule import compute_rate
from regard.training.settings import ScheduleShape


@pytest.mark.parametrize("shape", ["constant", "inverse-square-root", "cosine"])
def test_warm_up_is_a_straight_line_to_the_peak(shape: ScheduleShape) -> None:
    rates = [compute_rate(step, 0.5, Schedule(shape, warmup=7), 100) for step in range(1, 8)]
    assert rates == pytest.approx([0.5 * step / 7 for step in range(1, 8)])


def test_without_warm_up_the_first_step_has_the_peak() -> None:
    assert compute_rate(1, 0.5, Schedule("inverse-square-root", warmup=0), None) == 0.5


def test_inverse_square_root_halves_when_the_step_is_fourfold() -> None:
    schedule = Schedule("inverse-square-root", warmup=11)
    assert compute_rate(44, 0.3, schedule, None) == pytest.approx(0.15)


def test_cosine_passes_half_way_in_the_middle_and_ends_at_the_floor() -> None:
    schedule = Schedule("cosine", warmup=10, floor=0.2)
    assert compute_rate(60, 1.0, schedule, 110) == pytest.approx(0.6)
    assert compute_rate(110, 1.0, schedule, 110) == pytest.approx(0.2)
    assert compute_rate(500, 1.0, schedule, 110) == pytest.approx(0.2)
    assert compute_rate(35, 1.0, Schedule("cosine", 10), 110) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)


def test_cosine_needs_to_know_the_end() -> None:
    with pytest.raises(InputError, match=r"^schedule.shape: got cosine, expected a known end; fix: set stop"):
        compute_rate(5, 1.0, Schedule("cosine", 2), None)
