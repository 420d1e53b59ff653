"""Configurations check the ranges that their fields name."""

import re
from dataclasses import dataclass, replace

import pytest

from regard.errors import InputError, wrong
from regard.models.ranges import Channels, CheckedConfig, Count, Natural, NotNegative, Positive, Rate


@dataclass(frozen=True, slots=True)
class Cells(CheckedConfig):
    """One field of each range, and a condition on two of them."""

    layers: Count = 3
    longest: Count | None = None
    rate: Positive = 0.5
    noise: NotNegative = 0.0
    seed: Natural = 0
    dropout: Rate = 0.0
    channels: Channels = (5, 7)
    free: int = -11

    def check(self) -> None:
        if self.seed > self.layers:
            raise wrong("seed", self.seed, f"at most layers={self.layers}", "use 0")


CASES = [
    ("layers", 0, "at least 1; fix: give layers a value of 1 or more"),
    ("longest", 0, "at least 1; fix: give longest a value of 1 or more"),
    ("rate", 0.0, "a number above 0; fix: give rate a value above 0"),
    ("rate", float("nan"), "a number above 0; fix: give rate a value above 0"),
    ("noise", -0.1, "0 or more; fix: give noise a value of 0 or more"),
    ("seed", -1, "0 or more; fix: give seed a value of 0 or more"),
    ("dropout", 1.0, "a rate from 0 to below 1; fix: use 0 for none"),
    ("channels", (5, 0), "one number above 0 for each convolution; fix: use 16,32,64"),
    ("channels", (), "one number above 0 for each convolution; fix: use 16,32,64"),
    ("seed", 13, "at most layers=3; fix: use 0"),
]


@pytest.mark.parametrize(("name", "value", "message"), CASES)
def test_value_outside_its_range_is_refused(name: str, value: object, message: str) -> None:
    sentence = re.escape(f"{name}: got {value}, expected {message}")
    with pytest.raises(InputError, match=f"^{sentence}$"):
        replace(Cells(), **{name: value})


def test_values_inside_their_ranges_are_kept() -> None:
    cells = Cells(layers=1, longest=2, dropout=0.9, channels=(1,))
    assert (cells.layers, cells.longest, cells.dropout, cells.channels) == (1, 2, 0.9, (1,))
