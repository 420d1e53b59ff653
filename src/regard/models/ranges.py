"""Ranges of the numbers in a configuration: a field names its own beside its type, and the table checks them all."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from regard.errors import wrong


class Range(NamedTuple):
    """Which numbers a field may hold, and what a message says about the others; `{name}` is the field."""

    holds: Callable[[Any], bool]
    expected: str
    fix: str

    def check(self, name: str, value: Any) -> None:
        """Raise unless the range holds `value`; None, if a field allows it, is in every range."""
        if value is not None and not self.holds(value):
            raise wrong(name, value, self.expected, self.fix.format(name=name))


def at_least(least: int, fix: str = "give {name} a value of {least} or more") -> Range:
    """Return the range of whole numbers from `least` on.

    >>> at_least(1).check("layers", 0)
    Traceback (most recent call last):
    regard.errors.InputError: layers: got 0, expected at least 1; fix: give layers a value of 1 or more
    """
    return Range(lambda value: value >= least, f"at least {least}", fix.replace("{least}", str(least)))


def between(least: int, most: int, fix: str) -> Range:
    """Return the range of whole numbers from `least` to `most`."""
    return Range(lambda value: least <= value <= most, f"{least} to {most}", fix)


Count = Annotated[int, at_least(1)]
Positive = Annotated[float, Range(lambda value: value > 0, "a number above 0", "give {name} a value above 0")]
NotNegative = Annotated[float, Range(lambda value: value >= 0, "0 or more", "give {name} a value of 0 or more")]
Natural = Annotated[int, Range(lambda value: value >= 0, "0 or more", "give {name} a value of 0 or more")]
Rate = Annotated[float, Range(lambda value: 0 <= value < 1, "a rate from 0 to below 1", "use 0 for none")]
Channels = Annotated[
    tuple[int, ...],
    Range(lambda value: bool(value) and min(value) > 0, "one number above 0 for each convolution", "use 16,32,64"),
]


class CheckedConfig:
    """A table of a configuration: a frozen dataclass whose fields are checked by the ranges of their annotations."""

    __slots__ = ()

    def __post_init__(self) -> None:
        table: Any = type(self)
        for name, limits in find_ranges(table):
            limits.check(name, getattr(self, name))
        self.check()

    def check(self) -> None:
        """Raise if fields that are right by themselves do not fit each other; by default, all do."""


@cache
def find_ranges(config_type: type[Any]) -> list[tuple[str, Range]]:
    """Return the ranges that the fields of a table name, in their order."""
    hints = get_type_hints(config_type, include_extras=True)
    return [(entry.name, one) for entry in fields(config_type) for one in collect_ranges(hints[entry.name])]


def collect_ranges(hint: Any) -> list[Range]:
    """Return the ranges inside an annotation, also if it allows None (`Count | None`)."""
    if isinstance(hint, Range):
        return [hint]
    return [one for part in get_args(hint) for one in collect_ranges(part)]
