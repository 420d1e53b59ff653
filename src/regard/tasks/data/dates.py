"""Dates as the world's languages write them, to ISO: `星期日 2026年11月15日` is `2026-11-15`."""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache
from random import Random
from typing import Literal, NamedTuple

from regard.errors import import_package, wrong
from regard.tasks.data.generated_data import GeneratedPairs
from regard.tasks.data.pairs import SentencePair

Length = Literal["full", "long"]
FIRST = ("zh", "zh_Hant")  # before others that write the same; the second is no language of its own to Babel


class DateForm(NamedTuple):
    """One way of writing a date."""

    locale: str
    length: Length


class Dates(GeneratedPairs[date]):
    """Days of 1900 to 2099 in each locale's full form (with the day of the week) and long form.

    Shorter forms are left out: 03/04/2026 is one day in Spain and another in Puerto Rico. `locales` may be
    `("all",)`, every language that Babel knows.
    """

    first, last = date(1900, 1, 1), date(2099, 12, 31)

    def __init__(
        self,
        locales: Sequence[str] = ("all",),
        *,
        size: int = 4000,
        held_out: int = 500,
        seed: int = 1,
    ) -> None:
        super().__init__(size, held_out, seed)
        self.forms = find_forms(tuple(locales))

    def draw_fact(self, random: Random) -> date:
        return self.first + timedelta(days=random.randint(0, (self.last - self.first).days))

    def write_pair(self, fact: date, random: Random) -> SentencePair:
        return SentencePair(format_day(fact, random.choice(self.forms)), fact.isoformat())


@lru_cache(maxsize=8)
def find_forms(locales: tuple[str, ...]) -> tuple[DateForm, ...]:
    """Return the distinct forms of these locales; of two that could be confused, the first."""
    # Every month, and days that could be months.
    days = [date(2026, month, day) for month in range(1, 13) for day in (3, 4, 25)]
    meaning: dict[str, date] = {}
    found: dict[tuple[str, ...], DateForm] = {}
    for locale in list_locales() if locales == ("all",) else check_locales(locales):
        for length in ("full", "long"):
            form = DateForm(locale, length)
            texts = tuple(format_day(day, form) for day in days)
            clear = all(meaning.get(text, day) == day for text, day in zip(texts, days, strict=True))
            if clear and len(set(texts)) == len(days):
                meaning |= zip(texts, days, strict=True)
                found.setdefault(texts, form)
    return tuple(found.values())


def format_day(day: date, form: DateForm) -> str:
    """Return a day as its language writes it."""
    from babel.dates import format_date

    return str(format_date(day, form.length, locale=form.locale))


@lru_cache(maxsize=1)
def list_locales() -> tuple[str, ...]:
    """Return every language of Babel, without countries."""
    known = import_package("babel.localedata", "text", package="Babel").locale_identifiers()
    languages = sorted(name for name in known if "_" not in name and name not in FIRST)
    return (*FIRST, *languages)


def check_locales(locales: Sequence[str]) -> Sequence[str]:
    """Return the locales; raise if Babel does not know one."""
    from babel.localedata import exists

    known = list_locales()
    for locale in locales:
        if not exists(locale):
            near = [name for name in known if name[:1] == locale[:1]]
            raise wrong("locale", locale, "a locale of Babel", f"choose one of {', '.join(near)}, …, or all")
    return locales
