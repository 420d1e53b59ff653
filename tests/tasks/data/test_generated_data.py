"""Number words and dates: endless, the same by seed, and nothing tested that was trained on."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from regard.errors import InputError
from regard.tasks.data import Dates, Numbers
from regard.tasks.data.dataset import Dataset
from regard.tasks.data.dates import DateForm, find_forms, format_day
from regard.tasks.data.generated_data import GeneratedPairs, assign_split
from regard.tasks.data.numbers import get_number_formatter

SOURCES: list[Callable[..., GeneratedPairs[Any]]] = [Numbers, lambda **options: Dates(("zh", "en", "hr"), **options)]


@pytest.mark.parametrize("source", SOURCES)
def test_the_seed_and_the_epoch_decide(source: Callable[..., GeneratedPairs[Any]]) -> None:
    text, again, other = (source(size=50, held_out=20, seed=seed) for seed in (1, 1, 2))
    assert isinstance(text, Dataset)
    assert text.load_training(3) == again.load_training(3)
    assert text.load_training(3) != text.load_training(4)
    assert text.load_training(3) != other.load_training(3)
    assert text.validation == again.validation
    assert len(text.load_training(0)) == 50


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_tested_was_trained_on_with_any_seed(source: Callable[..., GeneratedPairs[Any]]) -> None:
    trained = {
        pair for seed in (1, 2) for epoch in range(3) for pair in source(size=500, seed=seed).load_training(epoch)
    }
    text = source(held_out=200, seed=3)
    held_out = [*text.validation, *text.tests["test"]]
    # Not even in other words: the fact itself is held out.
    assert not {pair.target for pair in trained} & {pair.target for pair in held_out}
    assert len(set(held_out)) == len(held_out)
    assert not set(text.validation) & set(text.tests["test"])


def test_numbers_are_said_in_both_languages() -> None:
    assert get_number_formatter("en")(10421) == "ten thousand, four hundred and twenty-one"
    assert get_number_formatter("de")(10421) == "zehntausendvierhunderteinundzwanzig"
    assert get_number_formatter("digits")(10421) == "1 0 4 2 1"
    text = Numbers("digits", "fr", digits=2, size=300)
    assert {len(pair.source.split()) for pair in text.load_training(0)} == {1, 2}
    assert len(text.validation) < 10, "there are only so many numbers of two digits"


def test_number_words_mean_one_number() -> None:
    said = [get_number_formatter("fr")(number) for number in range(2000)]
    assert len(set(said)) == 2000


def test_a_language_that_nobody_speaks() -> None:
    with pytest.raises(InputError, match=r"^language: got tlh, expected one of ar, be, .*, vi; fix: choose one"):
        Numbers("en", "tlh")
    with pytest.raises(InputError, match=r"^digits: got 40, expected 2 to 9; fix: "):
        Numbers(digits=40)


def test_dates_are_written_as_people_write_them() -> None:
    day = date(2026, 11, 15)
    assert format_day(day, DateForm("zh", "full")) == "2026年11月15日星期日"
    assert format_day(day, DateForm("de", "long")) == "15. November 2026"
    assert format_day(day, DateForm("hr", "long")) == "15. studenoga 2026."
    pair = Dates(("zh",), size=1).load_training(0)[0]
    year, month, number = map(int, pair.target.split("-"))
    assert pair.source.startswith(f"{year}年{month}月{number}日")


def test_hundreds_of_languages_and_no_two_dates_written_alike() -> None:
    everyone = find_forms(("all",))
    assert len({form.locale for form in everyone}) > 200
    assert {"zh", "zh_Hant", "en", "ar", "hi"} <= {form.locale for form in everyone}
    meanings: dict[str, date] = {}
    for form in everyone:
        for month in range(1, 13):
            for day in (date(2031, month, 2), date(2031, month, 11)):
                assert meanings.setdefault(format_day(day, form), day) == day


def test_a_locale_that_is_none() -> None:
    with pytest.raises(InputError, match=r"^locale: got zz_ZZ, expected a locale of Babel; fix: choose one of z"):
        Dates(("en", "zz_ZZ"))


def test_about_a_tenth_is_held_out() -> None:
    splits = [assign_split(number) for number in range(20_000)]
    assert splits.count("validation") == pytest.approx(1000, rel=0.1)
    assert splits.count("test") == pytest.approx(1000, rel=0.1)
