"""The values that a page, or a panel in a notebook, sends: each is checked before it is used."""

from collections.abc import Collection, Mapping
from typing import Any

from regard.datasets.bounds import format_number
from regard.datasets.text import check_text
from regard.errors import wrong


class Fields:
    """The values of a request by name. Each is taken once, of its type and within its bounds; none may be left."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)

    def take_text(self, name: str, most: int, default: str | None = None) -> str:
        """Take a text of 1 to `most` characters."""
        value = self.take(name, default)
        if isinstance(value, str):
            check_text(value, name)
        if not isinstance(value, str) or not 0 < len(value) <= most:
            got = f"{len(value):,} characters" if isinstance(value, str) else describe_kind(value)
            raise wrong(name, got, f"a text of 1 to {most:,} characters", "shorten it" if got[0] > "0" else "write one")
        return value

    def take_choice(self, name: str, known: Collection[str], default: str | None = None) -> str:
        """Take one of the known texts."""
        value = self.take(name, default)
        if not isinstance(value, str) or value not in known:
            got = repr(value[:100]) if isinstance(value, str) else describe_kind(value)
            raise wrong(name, got, f"one of {', '.join(known) or '(none)'}", "choose one of them")
        return value

    def take_integer(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """Take a whole number from `least` to `most`."""
        value = self.take(name, default)
        value = int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 12 else value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise wrong(name, format_value(value), f"a whole number from {least} to {most:,}", f"use {least}")
        return value

    def take_number(self, name: str, least: float, most: float, default: float) -> float:
        """Take a number from `least` to `most`."""
        value = self.take(name, default)
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or not least <= value <= most:  # neither NaN nor an integer of 400 digits is in between
            raise wrong(name, format_value(value), f"a number from {least:g} to {most:g}", f"use {default:g}")
        return float(value)

    def take_indices(self, name: str, size: int, longest: int) -> list[int]:
        """Take a list of at most `longest` whole numbers from 0 to below `size`."""
        value = self.take(name, [])
        if not isinstance(value, list) or len(value) > longest:
            got = f"{len(value):,} numbers" if isinstance(value, list) else describe_kind(value)
            raise wrong(name, got, f"a list of at most {longest:,}", "send fewer")
        for one in value:
            if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < size:
                raise wrong(name, format_value(one), f"whole numbers from 0 to {size - 1:,}", "count from 0")
        return value

    def take(self, name: str, default: Any = None) -> Any:
        """Take any value."""
        if name not in self.values and default is None:
            raise wrong(name, "nothing", "a value", f"send {name}")
        return self.values.pop(name, default)

    def finish(self) -> None:
        """Raise if a value is left that nobody has taken."""
        if self.values:
            raise wrong("body", repr(next(iter(self.values))[:100]), "known names only", "leave it out")


def format_value(value: object) -> str:
    """Return a value in few words."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return describe_kind(value)
    return format_number(value)


def describe_kind(value: object) -> str:
    """Return the beginning of a text, or the type of another value."""
    return repr(value[:40]) if isinstance(value, str) else f"a JSON {type(value).__name__}"
