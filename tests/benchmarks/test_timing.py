"""How times are taken and compared. What comes out of a clock is never asserted on."""

import gc

import pytest

from regard.compute.timing import Budget, interleave, summarize, summarize_ratios
from regard.errors import InputError


def test_quartiles_are_those_of_the_sorted_samples() -> None:
    assert summarize([5.0, 1.0, 3.0, 2.0, 4.0]) == (3.0, 2.0, 4.0, 5)
    assert summarize([7.0]) == (7.0, 7.0, 7.0, 1)


def test_no_sample_has_no_median() -> None:
    with pytest.raises(InputError, match=r"^samples: got none, expected at least one; fix: measure something$"):
        summarize([])


def test_a_ratio_is_taken_within_its_round() -> None:
    # The machine is ten times slower in the second round; the ratio does not notice.
    assert summarize_ratios([6.0, 60.0, 6.0], [2.0, 20.0, 2.0]) == (3.0, 3.0, 3.0, 3)


def test_contenders_take_turns() -> None:
    turns: list[str] = []
    contenders = {name: lambda name=name: turns.append(name) for name in "abc"}
    samples = interleave(contenders, Budget(seconds=0.0, least=4, most=9, sample=0.0))
    assert turns[-12:] == list("abc" * 4)
    assert {name: len(found) for name, found in samples.items()} == {"a": 4, "b": 4, "c": 4}


def test_rounds_end_at_the_most() -> None:
    samples = interleave({"a": lambda: None}, Budget(seconds=60.0, least=1, most=3, sample=0.0))
    assert len(samples["a"]) == 3


def test_collection_is_off_while_measuring_and_on_again_after() -> None:
    seen: list[bool] = []

    def fail() -> None:
        seen.append(gc.isenabled())
        if len(seen) > 5:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        interleave({"a": fail}, Budget(seconds=60.0, least=9, most=9, sample=0.0))
    assert not seen[-1]
    assert gc.isenabled()
