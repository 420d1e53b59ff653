"""One builder and one wording for everything that the caller can mend: `name: got …, expected …; fix: …`."""

import difflib
from collections.abc import Iterable

__all__ = ["InputError", "KindError", "PlanError", "RegardError"]


class RegardError(Exception):
    """Anything that this library raises on purpose."""

    relayed = False  # whether another process has said it already


class InputError(RegardError, ValueError):
    """A value that cannot be used."""


class KindError(RegardError, TypeError):
    """An object of the wrong type or dtype."""


class PlanError(RegardError, NotImplementedError):
    """A backend was asked for by name and cannot compute these parts."""


class StaleError(RegardError, RuntimeError):
    """Something is asked of a call whose tensors have changed since."""


def format_message(name: str, got: object, expected: str, fix: str) -> str:
    """The one wording.

    >>> format_message("heads", 3, "a divisor of size=64", "use one of 1, 2, 4, 8")
    'heads: got 3, expected a divisor of size=64; fix: use one of 1, 2, 4, 8'
    """
    return f"{name}: got {got}, expected {expected}; fix: {fix}"


def wrong(name: str, got: object, expected: str, fix: str) -> InputError:
    """A value error in the one wording, to be raised by the caller."""
    return InputError(format_message(name, got, expected, fix))


def wrong_kind(name: str, got: object, expected: str, fix: str) -> KindError:
    """A type error in the one wording, to be raised by the caller."""
    return KindError(format_message(name, got, expected, fix))


def missing_package(package: str, extra: str, otherwise: str = "") -> InputError:
    """A package that is not there, of an extra that brings it.

    >>> str(missing_package("pillow", "vision"))
    "pillow: got no such package, expected it installed; fix: pip install 'regard[vision]'"
    """
    return wrong(package, "no such package", "it installed", f"pip install 'regard[{extra}]'{otherwise}")


def find_nearest(name: str, known: Iterable[str]) -> str:
    """The known name that was most likely meant.

    >>> find_nearest("haeds", ["size", "heads"])
    'heads'
    """
    names = list(known)
    return (difflib.get_close_matches(name, names, n=1, cutoff=0.0) or names)[0]
